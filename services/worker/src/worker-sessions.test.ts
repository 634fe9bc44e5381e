/** Sessions of a living worker: their beginning, what bounds them, their end. */
import { afterEach, describe, expect, it } from 'vitest';
import { decodeText, readWorkerRecord } from '@throughline/protocol';
import type { JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
import { noMetrics } from '@throughline/telemetry';
import type { Metrics } from '@throughline/telemetry';
import { errorOf, methodsOf, progressOf, textOf } from './testing/messages.ts';
import { META, openBench, SESSIONS } from './testing/worker-bench.ts';
import type { Bench, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const standalone = (key: string): readonly JsonRpcMessage[] =>
  bench
    .accepted()
    .filter((event) => event.key === key && event.body.type === 'message' && event.body.stream === 's')
    .map(({ record }) => JSON.parse(decodeText(record.value!)) as JsonRpcMessage);
const initialize = (version = '2025-11-25'): object => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: version, capabilities: {} },
});

/** Metrics that note why client messages were dropped. */
function countDrops(): { readonly dropped: unknown[]; readonly metrics: Metrics } {
  const dropped: unknown[] = [];
  const add: Metrics['add'] = (name, _by, labels) => {
    if (name === 'throughline_worker_dropped_total') dropped.push(labels?.['reason']);
  };
  return { dropped, metrics: { ...noMetrics, add } };
}

describe('the bounds of sessions', () => {
  it('[WRK-SEATS] a server has no more instances than it may, though many are asked for at once', async () => {
    bench = await openBench(1);
    const { host } = await bench.start({ maxSessions: 2, host: { openMs: 50 } });
    const offsets = [];
    for (let index = 0; index < 5; index++) offsets.push((await bench.post(`k${index}`, initialize()))[0] ?? -1);
    const answers = [];
    for (const at of offsets) answers.push(errorOf((await bench.ended(at)).messages[0])?.code ?? 'ok');
    expect(answers.sort()).toEqual(['CAPACITY', 'CAPACITY', 'CAPACITY', 'ok', 'ok']);
    expect(host.opened).toHaveLength(2);
  });

  it('[WRK-SEATS] a worker without a seat left says so at once, and again when it has one', async () => {
    bench = await openBench(21);
    await bench.start({ maxSessions: 1, config: { heartbeatMs: 60_000, deadAfterMs: 600_000 } });
    const offers = (): unknown =>
      bench
        .records(META)
        .flatMap((record) =>
          decodeText(record.key!).startsWith('worker/') ? [readWorkerRecord(record)?.partitions] : [],
        )
        .at(-1);
    expect(offers()).toEqual([0]);
    await bench.open('a');
    await bench.until(() => JSON.stringify(offers()) === '[]', 1000);
    await bench.end('a');
    await bench.until(() => JSON.stringify(offers()) === '[0]', 1000);
  });

  it('[WRK-SEATS] a principal has no more instances than it may, and gets one when another ends', async () => {
    bench = await openBench(2);
    await bench.start({ config: { maxSessionsPerPrincipal: 1 } });
    const open = async (key: string, principal: string): Promise<unknown> => {
      const [at = -1] = await bench.post(key, initialize(), { principal });
      return errorOf((await bench.ended(at)).messages[0])?.code ?? 'ok';
    };
    expect([await open('a', 'p'), await open('b', 'p'), await open('c', 'q')]).toEqual(['ok', 'CAPACITY', 'ok']);
    await bench.end('a');
    await bench.until(() => bench.session('a').endReason !== null);
    expect(await open('d', 'p')).toBe('ok');
  });
});

describe('the end of a session', () => {
  it('[WRK-END] fails what is pending both ways, says why, and is recorded', async () => {
    bench = await openBench(3);
    const { host } = await bench.start();
    await bench.open('k');
    const asked = await bench.call('k', 1, 'ask');
    const queued = await bench.call('k', 2, 'hang');
    await bench.until(() => bench.stream(`r${asked}`).messages.length === 1);
    await bench.end('k');
    const { messages } = await bench.ended(asked);
    const id = (messages[0] as JsonRpcRequest).id;
    expect(messages[1]).toMatchObject({ method: 'notifications/cancelled', params: { requestId: id } });
    expect(messages[2]).toMatchObject({ id: 1, error: { data: { code: 'SESSION_ENDED', cause: 'deleted' } } });
    expect(errorOf((await bench.ended(queued)).messages[0])?.code).toBe('SESSION_ENDED');
    await bench.until(() => bench.session('k').endReason === 'deleted');
    expect(host.opened[0]?.isClosed).toBe(true);
    const order = bench.accepted().filter(({ key }) => key === 'k');
    expect(order.at(-1)?.body.type).toBe('sessionEnded');
  });

  it('[WRK-END] that cannot be recorded is tried again', async () => {
    bench = await openBench(4);
    let refused = 3;
    await bench.start({
      wrap: (log) => ({
        ...log,
        append: async (to, records) => {
          log.failAppends(to.topic === 'sessions' && isEnd(records[0]?.key) && refused-- > 0 ? 'refused' : null);
          return log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    await bench.end('k');
    await bench.until(() => bench.session('k').endReason === 'deleted');
    expect(refused).toBeLessThan(0);
  });

  it('[WRK-END] a server that dies fails its calls; the session ends if it may not be rebuilt', async () => {
    bench = await openBench(5);
    await bench.start({ onOwnerLoss: 'terminate' });
    await bench.open('k');
    const at = await bench.call('k', 1, 'die', { ms: 10 });
    expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'SERVER_FAILED', mayHaveRun: true });
    await bench.until(() => bench.session('k').endReason === 'server-gone');
  });

  it('[WRK-RESTORE] a server that dies is rebuilt for the next call if it may be, and open questions are withdrawn', async () => {
    bench = await openBench(6);
    const { host } = await bench.start();
    await bench.open('k');
    await bench.attach('k');
    await bench.time.advance(100);
    await host.opened[0]?.ask('roots/list');
    const at = await bench.call('k', 1, 'die', { ms: 10 });
    await bench.ended(at);
    expect(methodsOf(standalone('k'))).toEqual(['roots/list', 'notifications/cancelled']);
    const next = await bench.ended(await bench.call('k', 2, 'effect', { token: 't' }));
    expect(textOf(next.messages[0])).toBe('effect t');
    expect(host.opened[1]?.methods).toEqual(['initialize', 'notifications/initialized', 'tools/call']);
    expect(bench.session('k').endReason).toBeNull();
  });

  it('[WRK-END] initialize that the server refuses ends the session', async () => {
    bench = await openBench(7);
    await bench.start({ host: { refuses: new Set(['initialize']) } });
    const [at = -1] = await bench.post('k', initialize());
    expect((await bench.ended(at)).messages[0]).toMatchObject({ error: { code: -32601 } });
    await bench.until(() => bench.session('k').endReason === 'server-gone');
  });
});

describe('a session that cannot be recorded', () => {
  it('[WRK-RESTORE] does not begin: its client is told, and it ends', async () => {
    bench = await openBench(22);
    await bench.start({
      wrap: (log) => ({
        ...log,
        append: (to, records) => {
          log.failAppends(to.topic === 'sessions' && !isEnd(records[0]?.key) ? 'refused' : null);
          return log.append(to, records);
        },
      }),
    });
    const [at = -1] = await bench.post('k', initialize());
    expect(errorOf((await bench.ended(at)).messages[0])?.code).toBe('LOG_UNAVAILABLE');
    await bench.until(() => bench.session('k').endReason === 'unknown');
  });
});

describe('time', () => {
  const IDLE: WorkerChoice = { idleTtl: 60, config: { unloadAfterMs: 10_000 } };

  it('[WRK-IDLE] idle servers are unloaded and rebuilt on demand', async () => {
    bench = await openBench(8);
    const { host } = await bench.start(IDLE);
    await bench.open('k');
    await bench.until(() => host.opened[0]?.isClosed === true);
    expect(bench.session('k').endReason).toBeNull();
    await bench.ended(await bench.call('k', 1, 'effect'));
    expect(host.opened).toHaveLength(2);
  });

  it('[WRK-IDLE] a session with no traffic ends as idle, one with a call does not', async () => {
    bench = await openBench(9);
    await bench.start(IDLE);
    await bench.open('quiet');
    await bench.open('busy');
    await bench.call('busy', 1, 'hang');
    await bench.until(() => bench.session('quiet').endReason === 'idle');
    await bench.time.advance(300_000);
    expect(bench.session('busy').endReason).toBeNull();
  });

  it('[WRK-IDLE] a question that nobody answers does not keep a session for ever', async () => {
    bench = await openBench(10);
    const { host } = await bench.start(IDLE);
    await bench.open('k');
    await host.opened[0]?.ask('roots/list');
    await bench.until(() => bench.session('k').endReason === 'idle');
  });

  it('[WRK-IDLE] a session ends at its maximum life, whatever it does', async () => {
    bench = await openBench(11);
    await bench.start({ idleTtl: 3600, config: { maxLifeMs: 60_000 } });
    await bench.open('k');
    const at = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.session('k').endReason === 'expired');
    expect((await bench.ended(at)).messages).toMatchObject([{ error: { data: { cause: 'expired' } } }]);
  });

  it('[WRK-TOMBSTONE] a maximum life after its end nothing of a session is held', async () => {
    bench = await openBench(12);
    await bench.start({ config: { maxLifeMs: 60_000 } });
    await bench.open('k');
    await bench.end('k');
    await bench.until(() => bench.session('k').endReason !== null);
    const held = (): readonly (string | null)[] => {
      const newest = new Map(bench.records(SESSIONS).map(({ key, value }) => [decodeText(key!), value]));
      return [...newest].filter(([, value]) => value !== null).map(([key]) => key);
    };
    await bench.time.advance(50_000);
    expect(held()).toEqual(['k', 'k/end']);
    await bench.until(() => held().length === 0, 60_000);
  });

  it('[WRK-PING] moves the idle standalone cursor of an older client at a quarter of retention, and its answer is swallowed', async () => {
    bench = await openBench(13, { retentionMs: 400_000 });
    const { dropped, metrics } = countDrops();
    const { host } = await bench.start({ idleTtl: 100_000, metrics });
    await bench.open('old', { version: '2025-06-18' });
    await bench.open('new', { version: '2025-11-25' });
    await bench.open('deaf', { version: '2025-06-18' });
    await bench.attach('old');
    await bench.attach('new');
    await bench.time.advance(95_000);
    expect(standalone('old')).toEqual([]);
    await bench.time.advance(10_000);
    const [ping] = standalone('old');
    expect(ping).toMatchObject({ jsonrpc: '2.0', method: 'ping' });
    const received = host.opened.map((session) => session.received.length);
    await bench.post('old', { jsonrpc: '2.0', id: (ping as JsonRpcRequest).id, result: {} });
    await bench.time.advance(100_000);
    expect([standalone('old').length, standalone('new').length, standalone('deaf').length]).toEqual([2, 0, 0]);
    expect(host.opened.map((session) => session.received.length)).toEqual(received);
    expect(dropped).toEqual([]);
  });
});

describe('what the server says', () => {
  it('[WRK-STANDALONE] a question of no call goes on the oldest open stream while nobody listens, then on the standalone one', async () => {
    bench = await openBench(14);
    const { host } = await bench.start();
    await bench.open('k');
    const oldest = await bench.call('k', 1, 'hang');
    await bench.call('k', 2, 'hang');
    await bench.until(() => bench.runs.length === 2);
    await host.opened[0]?.ask('roots/list');
    await bench.attach('k');
    await bench.time.advance(100);
    await host.opened[0]?.ask('sampling/createMessage');
    await bench.time.advance(100);
    expect(methodsOf(bench.stream(`r${oldest}`).messages)).toEqual(['roots/list']);
    expect(methodsOf(standalone('k'))).toEqual(['sampling/createMessage']);
  });

  it('[WRK-STANDALONE] [MCP-L3] a client that listens anew is told what to read again, of what its server said it would tell', async () => {
    bench = await openBench(15);
    await bench.start();
    await bench.open('k');
    await bench.attach('k');
    await bench.time.advance(100);
    expect(standalone('k')).toEqual([]);
    await bench.attach('k');
    await bench.time.advance(100);
    // Its server offers resources as well, but did not say that it would tell of their changes.
    expect(methodsOf(standalone('k'))).toEqual(['notifications/tools/list_changed']);
  });

  it('[WRK-STANDALONE] [MCP-L2] but not before it has said that it is initialized', async () => {
    bench = await openBench(23);
    await bench.start();
    const [at = -1] = await bench.post('k', initialize());
    await bench.ended(at);
    await bench.attach('k');
    await bench.attach('k');
    await bench.time.advance(100);
    expect(standalone('k')).toEqual([]);
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/initialized' });
    await bench.time.advance(100);
    expect(methodsOf(standalone('k'))).toEqual(['notifications/tools/list_changed']);
  });

  it('[WRK-STANDALONE] after a takeover it is told as soon as its server is rebuilt', async () => {
    bench = await openBench(16);
    const first = await bench.start({ config: { heartbeatMs: 100, deadAfterMs: 400 } });
    await bench.open('k');
    await bench.attach('k');
    first.crash();
    await bench.start();
    await bench.time.advance(5000);
    await bench.attach('k');
    await bench.ended(await bench.call('k', 1, 'effect'));
    expect(methodsOf(standalone('k'))).toContain('notifications/tools/list_changed');
  });

  it('[WRK-STREAM-CLOSE] it may have the stream of a call closed for clients that can poll, and of no other', async () => {
    bench = await openBench(17);
    const { host } = await bench.start();
    await bench.open('k');
    const closed = (): readonly unknown[] =>
      bench
        .accepted()
        .flatMap(({ body }) => (body.type === 'closed' ? [body.stream === 's' ? 's' : body.stream.at] : []));
    const at = await bench.call('k', 1, 'hang');
    await bench.call('k', 2, 'hang', {}, { version: '2025-06-18' });
    await bench.until(() => bench.runs.length === 2);
    for (const related of [1, 2, 'standalone']) host.opened[0]?.callbacks.onCloseStream(related);
    await bench.time.advance(100);
    expect(closed()).toEqual([at, 's']);
  });

  it('[WRK-FLOOD] a server that heeds backpressure never has much waiting for a slow log', async () => {
    bench = await openBench(18);
    const { host } = await bench.start({
      wrap: (log) => ({
        ...log,
        append: async (to, records) => {
          if (to.topic === 'events') {
            await new Promise<void>((resolve) => bench.time.clock().setTimer(20, resolve));
          }
          return log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    const at = await bench.call('k', 1, 'flood', { count: 40, bytes: 1024 * 1024 });
    let said = 0;
    const session = host.opened[0]!;
    const original = session.callbacks.onMessage.bind(session.callbacks);
    Object.assign(session.callbacks, {
      onMessage: (message: JsonRpcMessage, related: string | number | undefined) => {
        said++;
        return original(message, related);
      },
    });
    let worst = 0;
    const written = (): number =>
      bench.accepted().filter(({ body }) => body.type === 'message' && body.stream !== 's').length;
    const before = written();
    await bench.until(() => {
      worst = Math.max(worst, said - (written() - before));
      return said === 41 && written() === before + 41;
    });
    expect(progressOf(bench.stream(`r${at}`).messages)).toHaveLength(40);
    expect(worst).toBeLessThanOrEqual(11);
  });

  it('[WRK-FLOOD] a server that does not is ended, and the others go on', async () => {
    bench = await openBench(19);
    await bench.start();
    await bench.open('k');
    await bench.open('calm');
    const at = await bench.call('k', 1, 'burst', { count: 60, bytes: 1024 * 1024 });
    const { messages } = await bench.ended(at);
    expect(errorOf(messages.at(-1))?.code).toBe('SESSION_ENDED');
    await bench.until(() => bench.session('k').endReason === 'server-gone');
    expect(textOf((await bench.ended(await bench.call('calm', 1, 'effect'))).messages[0])).toBe('effect ');
  });

  it('[WRK-FLOOD] asks no more than it may have unanswered', async () => {
    bench = await openBench(20);
    const { host } = await bench.start();
    await bench.open('k');
    for (let index = 0; index < 1001; index++) await host.opened[0]?.ask('roots/list');
    await bench.time.advance(100);
    expect(standalone('k')).toHaveLength(1000);
    expect(host.opened[0]?.received.at(-1)).toMatchObject({ id: 1001, error: { data: { code: 'CAPACITY' } } });
  });

  it('[WRK-SETTLE] what it says after its answer, or is no JSON-RPC, is dropped and counted', async () => {
    bench = await openBench(21);
    const { dropped, metrics } = countDrops();
    const { host } = await bench.start({ metrics });
    await bench.open('k');
    const at = await bench.call('k', 1, 'effect');
    await bench.ended(at);
    await host.opened[0]?.say({ id: 1, result: {} });
    await host.opened[0]?.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 9 } });
    await host.opened[0]?.say({ jsonrpc: '1.0' });
    await bench.post('k', { jsonrpc: '2.0', id: 'who?', result: {} });
    await bench.time.advance(100);
    expect(bench.stream(`r${at}`)).toMatchObject({ ends: 1, late: 0 });
    expect(dropped).toEqual([
      'answer-to-no-call',
      'progress-of-no-call',
      'server-spoke-no-json-rpc',
      'answer-to-nothing',
    ]);
  });
});

const isEnd = (key: Uint8Array | null | undefined): boolean => decodeText(key ?? new Uint8Array(0)).endsWith('/end');
