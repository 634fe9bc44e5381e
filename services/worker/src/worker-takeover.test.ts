/** What a successor does with what a dead owner left. */
import { afterEach, describe, expect, it } from 'vitest';
import { readCheckpoint } from '@throughline/protocol';
import type { JsonRpcRequest } from '@throughline/protocol';
import { Meta } from '@throughline/tail';
import { errorOf, methodsOf, progressOf, textOf } from './testing/messages.ts';
import { EVENTS, INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400 } };

async function openWith(seed: number, choice: WorkerChoice = QUICK): Promise<BenchWorker> {
  bench = await openBench(seed);
  const worker = await bench.start(choice);
  await bench.open('k');
  return worker;
}
const ran = (): readonly string[] => bench.runs.map(({ worker, token }) => `${worker} ${token}`);
const cancel = (requestId: number): object => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});

describe('a request that the dead owner', () => {
  it('[WRK-TAKEOVER] had answered is left alone', async () => {
    const first = await openWith(1);
    const at = await bench.call('k', 1, 'effect');
    await bench.ended(at);
    first.crash();
    await bench.start(QUICK);
    await bench.time.advance(5000);
    expect([bench.stream(`r${at}`).ends, bench.stream(`r${at}`).messages.length, bench.runs.length]).toEqual([1, 1, 1]);
  });

  it('[WRK-TAKEOVER] had started, with effects, fails explicitly and does not run again', async () => {
    const first = await openWith(2);
    const at = await bench.call('k', 1, 'effect', { ms: 60_000, token: 't' });
    await bench.until(() => bench.runs.length === 1);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect(messages).toMatchObject([
      { id: 1, error: { data: { code: 'OWNER_LOST', reason: 'owner-lost', mayHaveRun: true } } },
    ]);
    expect(ran()).toEqual(['worker-1 t']);
  });

  it('[WRK-TAKEOVER] had not started runs on the new one', async () => {
    const first = await openWith(3, { config: { ...QUICK.config, maxRunningPerSession: 1 } });
    await bench.call('k', 1, 'hang');
    const at = await bench.call('k', 2, 'effect', { token: 't' });
    await bench.until(() => bench.runs.length === 1);
    first.crash();
    await bench.start(QUICK);
    expect(textOf((await bench.ended(at)).messages[0])).toBe('effect t');
    expect(ran()).toEqual(['worker-1 ', 'worker-2 t']);
  });

  it.each(['upsert', 'lookup'])(
    '[WRK-TAKEOVER] had started, %s, runs again once, and not a third time',
    async (tool) => {
      const first = await openWith(4);
      const at = await bench.call('k', 1, tool, { ms: 60_000 });
      await bench.until(() => bench.runs.length === 1);
      await bench.time.advance(100);
      first.crash();
      const second = await bench.start(QUICK);
      await bench.until(() => bench.runs.length === 2);
      await bench.time.advance(100);
      second.crash();
      await bench.start(QUICK);
      expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
      expect(bench.runs).toHaveLength(2);
    },
  );

  it('[WRK-TAKEOVER] had started and the client cancelled since ends without a message', async () => {
    const first = await openWith(6);
    const at = await bench.call('k', 1, 'upsert', { ms: 60_000 });
    await bench.until(() => bench.runs.length === 1);
    first.crash();
    await bench.post('k', cancel(1));
    await bench.start(QUICK);
    expect(await bench.ended(at)).toEqual({ messages: [], ends: 1, late: 0 });
    expect(bench.runs).toHaveLength(1);
  });

  it('[WRK-TAKEOVER] had not started and that stands behind a cancel of the same id still runs', async () => {
    const first = await openWith(7);
    first.crash();
    await bench.post('k', cancel(9));
    const at = await bench.call('k', 9, 'effect', { token: 't' });
    await bench.start(QUICK);
    expect(textOf((await bench.ended(at)).messages[0])).toBe('effect t');
  });

  it('[WRK-TAKEOVER] never met runs, however many owners died before their first checkpoint', async () => {
    const first = await openWith(8);
    first.crash();
    const at = await bench.call('k', 1, 'effect', { token: 't' });
    for (let owner = 0; owner < 3; owner++) {
      const { log, process, started } = bench.starting(QUICK);
      started.catch(() => undefined);
      const claims = (): number => bench.accepted().filter(({ body }) => body.type === 'claimed').length;
      await bench.until(() => claims() === owner + 2);
      bench.time.kill(process);
      log.crash();
    }
    await bench.start(QUICK);
    await bench.ended(at);
    expect(bench.runs.length).toBeLessThanOrEqual(1);
    expect(bench.stream(`r${at}`).ends).toBe(1);
  });
});

describe('a repeated request over a takeover', () => {
  it('[WRK-DEDUPE] is still recognized after two takeovers within the minute', async () => {
    const first = await openWith(10);
    const one = await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    first.crash();
    const second = await bench.start(QUICK);
    await bench.time.advance(5000);
    second.crash();
    await bench.start(QUICK);
    const two = await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    expect(two.messages).toEqual(one.messages);
    expect(bench.runs).toHaveLength(1);
  });

  it('[WRK-DEDUPE] is still recognized though the wall clock of an owner is ahead', async () => {
    const first = await openWith(24);
    await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    first.crash();
    const second = await bench.start({ ...QUICK, wallSkewMs: 3_600_000 });
    await bench.ended(await bench.call('k', 2, 'lookup'));
    await bench.time.advance(5000);
    second.crash();
    await bench.start(QUICK);
    await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    expect(bench.runs.filter(({ tool }) => tool === 'effect')).toHaveLength(1);
  });

  it('[WRK-DEDUPE] is forgotten some time after the minute, so that a takeover reads no further back', async () => {
    const first = await openWith(11);
    await bench.ended(await bench.call('k', 1, 'effect'));
    await bench.time.advance(120_000);
    const at = await bench.call('k', 2, 'effect');
    await bench.ended(at);
    await bench.time.advance(5000);
    const checkpoints = bench.accepted().filter(({ body }) => body.type === 'checkpoint');
    expect(readCheckpoint(checkpoints.at(-1)!.record)?.from).toBe(at);
    first.crash();
  });

  it('[WRK-ALIAS] goes on where the copy stood, with no message twice', async () => {
    const first = await openWith(12);
    const args = { count: 9, ms: 1000 };
    const one = await bench.call('k', 1, 'countdown', args);
    await bench.until(() => progressOf(bench.stream(`r${one}`).messages).length === 2);
    const two = await bench.call('k', 1, 'countdown', args);
    await bench.until(() => progressOf(bench.stream(`r${two}`).messages).length === 3);
    first.crash();
    await bench.start(QUICK);
    const [a, b] = [await bench.ended(one), await bench.ended(two)];
    expect(progressOf(b.messages)).toEqual([1, 2, 3]);
    expect(b).toEqual(a);
  });

  it('[WRK-ALIAS] that was answered is not answered again', async () => {
    const first = await openWith(13);
    await bench.ended(await bench.call('k', 1, 'effect'));
    const two = await bench.call('k', 1, 'effect');
    await bench.ended(two);
    first.crash();
    await bench.start(QUICK);
    await bench.time.advance(5000);
    expect(bench.stream(`r${two}`)).toMatchObject({ ends: 1, late: 0 });
  });

  it.each([0, 5000])(
    '[WRK-ALIAS] of a request older than the window is not run, whenever its owner dies (%d ms on)',
    async (ms) => {
      bench = await openBench(14);
      let isSlow = false;
      const first = await bench.start({
        ...QUICK,
        // The alias is written, what follows it is not.
        wrap: (log) => ({
          ...log,
          append: async (to, records) => {
            if (isSlow && to.topic === 'events' && !records.some(isControl)) return new Promise(() => undefined);
            return log.append(to, records);
          },
          read: (from, position, options) =>
            isSlow && from.topic === 'events' && options?.waitMs === undefined
              ? new Promise(() => undefined)
              : log.read(from, position, options),
        }),
      });
      await bench.open('k');
      await bench.ended(await bench.call('k', 1, 'effect'));
      // The owner remembers it for longer than the log has to.
      await bench.time.advance(200_000);
      await bench.ended(await bench.call('k', 2, 'lookup'));
      await bench.time.advance(5000);
      isSlow = true;
      const again = await bench.call('k', 1, 'effect');
      await bench.until(() => bench.accepted().some(({ body }) => body.type === 'alias'));
      await bench.time.advance(ms);
      first.crash();
      await bench.start(QUICK);
      const { messages, ends } = await bench.ended(again);
      expect([messages.length, ends, bench.runs.length]).toEqual([1, 1, 2]);
    },
  );
});

describe('a batch over a takeover', () => {
  const VERSION = { version: '2025-03-26' };
  const call = (id: number, name: string, args: object = {}): object => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  });

  it('[WRK-BATCH-END] that had ended is not ended again', async () => {
    const first = await openWith(15);
    const [at = -1] = await bench.post('k', [call(1, 'effect'), call(2, 'effect')], VERSION);
    await bench.ended(at);
    await bench.time.advance(5000);
    first.crash();
    const second = await bench.start(QUICK);
    await bench.time.advance(5000);
    second.crash();
    await bench.start(QUICK);
    await bench.time.advance(5000);
    expect(bench.stream(`r${at}`)).toMatchObject({ ends: 1, late: 0 });
    expect(bench.stream(`r${at}`).messages).toHaveLength(2);
  });

  it.each([0, 5000])('[WRK-BATCH-END] of which one member was answered ends with the other (%d ms on)', async (ms) => {
    const first = await openWith(16);
    const [at = -1] = await bench.post('k', [call(1, 'effect'), call(2, 'hang')], VERSION);
    await bench.until(() => bench.stream(`r${at}`).messages.length === 1);
    await bench.time.advance(ms);
    first.crash();
    await bench.start(QUICK);
    const { messages, ends, late } = await bench.ended(at);
    expect([textOf(messages[0]), errorOf(messages[1])?.code]).toEqual(['effect ', 'OWNER_LOST']);
    expect([messages.length, ends, late]).toEqual([2, 1, 0]);
  });
});

describe('a batch whose members come apart', () => {
  it('[WRK-BATCH-END] ends with the last of them, though another owner took the first', async () => {
    const first = await openWith(17);
    const call = (id: number, name: string): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
    const [at = -1] = await bench.post('k', call(1, 'effect'), { version: '2025-03-26', batch: '0/2' });
    await bench.until(() => bench.stream(`r${at}`).messages.length === 1);
    await bench.time.advance(5000);
    first.crash();
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    await bench.post('k', call(2, 'effect'), { version: '2025-03-26', batch: '1/2' });
    const { messages, ends } = await bench.ended(at);
    expect([messages.length, ends, bench.runs.length]).toEqual([2, 1, 2]);
  });
});

describe('a session over a takeover', () => {
  it('[WRK-RESTORE] is rebuilt with initialize, log level and subscriptions, and the client sees no answer of it', async () => {
    const first = await openWith(20);
    const ask = (id: number, method: string, params: object): object => ({ jsonrpc: '2.0', id, method, params });
    for (const [id, method, params] of [
      [1, 'logging/setLevel', { level: 'error' }],
      [2, 'resources/subscribe', { uri: 'a:1' }],
      [3, 'resources/subscribe', { uri: 'a:2' }],
      [4, 'resources/unsubscribe', { uri: 'a:1' }],
    ] as const)
      await bench.ended((await bench.post('k', ask(id, method, params)))[0] ?? -1);
    first.crash();
    const { host } = await bench.start(QUICK);
    expect(host.opened).toEqual([]);
    const before = bench.accepted().length;
    await bench.ended(await bench.call('k', 5, 'effect'));
    expect(host.opened[0]?.methods).toEqual([
      'initialize',
      'notifications/initialized',
      'logging/setLevel',
      'resources/subscribe',
      'tools/call',
    ]);
    expect(host.opened[0]?.received[3]).toMatchObject({ params: { uri: 'a:2' } });
    const written = bench
      .accepted()
      .slice(before)
      .filter(({ body }) => body.type === 'message');
    expect(written).toHaveLength(1);
  });

  it('[WRK-RESTORE] that its server refuses to take up ends with a reason, never silently anew', async () => {
    const first = await openWith(21);
    const [at = -1] = await bench.post('k', {
      jsonrpc: '2.0',
      id: 1,
      method: 'resources/subscribe',
      params: { uri: 'a:1' },
    });
    await bench.ended(at);
    first.crash();
    await bench.start({ ...QUICK, host: { refuses: new Set(['resources/subscribe']) } });
    const { messages } = await bench.ended(await bench.call('k', 2, 'effect'));
    expect(errorOf(messages[0])?.code).toBe('SERVER_FAILED');
    await bench.until(() => bench.session('k').endReason === 'server-gone');
    expect(bench.runs).toEqual([]);
  });

  it('[WRK-RESTORE] whose fresh server does not answer fails the call in time, and is tried again by the next', async () => {
    const first = await openWith(22);
    first.crash();
    const ignores = new Set(['initialize']);
    const { host } = await bench.start({ ...QUICK, host: { ignores } });
    const { messages } = await bench.ended(await bench.call('k', 1, 'effect'));
    expect(errorOf(messages[0])?.code).toBe('SERVER_FAILED');
    ignores.clear();
    expect(textOf((await bench.ended(await bench.call('k', 2, 'effect'))).messages[0])).toBe('effect ');
    expect(host.opened.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  });

  it('[WRK-TAKEOVER] a call behind requests that retention took is not said to have not run: it may repeat one of them', async () => {
    const terminate: WorkerChoice = { ...QUICK, onOwnerLoss: 'terminate' };
    const first = await openWith(33, terminate);
    await bench.ended(await bench.call('k', 1, 'effect'));
    first.crash();
    const again = await bench.call('k', 1, 'effect');
    bench.store.controls.evictBefore(INBOUND, again);
    await bench.start(terminate);
    expect(errorOf((await bench.ended(again)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(bench.runs.length).toBe(1);
  });

  it('[WRK-RESTORE] by default ends with the reason owner-lost, its calls fail, and no server is made', async () => {
    const terminate: WorkerChoice = { ...QUICK, onOwnerLoss: 'terminate' };
    const first = await openWith(23, terminate);
    const at = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    first.crash();
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
    const late = await bench.call('k', 2, 'effect');
    const { host } = await bench.start(terminate);
    expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(errorOf((await bench.ended(late)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: false });
    await bench.until(() => bench.session('k').endReason === 'owner-lost');
    expect(errorOf((await bench.ended(await bench.call('k', 3, 'effect'))).messages[0])?.code).toBe('SESSION_ENDED');
    expect([host.opened.length, bench.runs.length]).toEqual([0, 1]);
  });

  it('[WRK-RESTORE] that was being opened when its owner died is opened by the new one', async () => {
    bench = await openBench(24);
    const first = await bench.start({ ...QUICK, host: { openMs: 10_000 } });
    const params = { protocolVersion: '2025-11-25', capabilities: {} };
    const [at = -1] = await bench.post('k', { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    await bench.time.advance(100);
    first.crash();
    const { host } = await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect(messages).toMatchObject([{ id: 0, result: { protocolVersion: '2025-11-25' } }]);
    expect(host.opened[0]?.methods).toEqual(['initialize']);
    expect(bench.session('k').record?.version).toBe('2025-11-25');
  });

  it('[WRK-END] that ended in the log does not come back, though its record says that it lives', async () => {
    bench = await openBench(25);
    const first = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) =>
          to.topic === 'sessions' && records[0]?.value !== null && isEnd(records[0]?.key)
            ? new Promise(() => undefined)
            : log.append(to, records),
      }),
    });
    await bench.open('k');
    await bench.end('k');
    await bench.until(() => bench.accepted().some(({ body }) => body.type === 'sessionEnded'));
    // A checkpoint in between must not make it forgotten.
    await bench.time.advance(5000);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(await bench.call('k', 1, 'effect'));
    expect(errorOf(messages[0])?.code).toBe('SESSION_ENDED');
    await bench.until(() => bench.session('k').endReason !== null);
    expect(bench.runs).toEqual([]);
  });

  it('[WRK-END] whose end the dead owner had written is not ended a second time', async () => {
    const first = await openWith(27);
    await bench.end('k');
    const ends = (): number => bench.accepted().filter(({ body }) => body.type === 'sessionEnded').length;
    await bench.until(() => ends() === 1);
    first.crash();
    await bench.start(QUICK);
    await bench.time.advance(5000);
    expect([ends(), bench.session('k').endReason]).toEqual([1, 'deleted']);
  });

  it('[WRK-NAMESPACE] ids of server requests differ between owners, and answers to a former one are dropped', async () => {
    const first = await openWith(26);
    const asked = await bench.call('k', 1, 'ask');
    await bench.until(() => bench.stream(`r${asked}`).messages.length === 1);
    const before = (bench.stream(`r${asked}`).messages[0] as JsonRpcRequest).id;
    first.crash();
    const { host } = await bench.start(QUICK);
    const again = await bench.call('k', 2, 'ask');
    await bench.until(() => methodsOf(bench.stream(`r${again}`).messages).length === 1);
    const after = (bench.stream(`r${again}`).messages[0] as JsonRpcRequest).id;
    expect(after).not.toBe(before);
    const count = host.opened[0]!.received.length;
    await bench.post('k', { jsonrpc: '2.0', id: before, result: {} });
    await bench.post('k', { jsonrpc: '2.0', id: after, result: { yes: true } });
    await bench.until(() => host.opened[0]!.received.length > count);
    expect(host.opened[0]!.received.slice(count)).toEqual([{ jsonrpc: '2.0', id: 1, result: { yes: true } }]);
  });
});

describe('when history is short', () => {
  it('[WRK-EPOCH] requests of a former epoch are never run again, and its sessions end', async () => {
    const first = await openWith(30);
    const started = await bench.call('k', 1, 'upsert', { ms: 60_000 });
    await bench.until(() => bench.runs.length === 1);
    const meta = new Meta({ log: bench.log, clock: bench.time.clock('client') });
    const before = bench.epoch();
    await meta.proposeEpoch(bench.time.random, before, 'test');
    await bench.until(() => bench.epoch() !== before);
    await bench.call('k', 2, 'effect', { token: 'never' });
    await bench.until(() => first.worker.owned().length === 1);
    await bench.until(() => bench.session('k').endReason !== null);
    expect(bench.session('k').endReason).toBe('epoch-ended');
    await bench.time.advance(10_000);
    expect(bench.runs).toHaveLength(1);
    expect(bench.stream(`r${started}`).messages).toEqual([]);
    await bench.open('new');
    await bench.ended(await bench.call('new', 1, 'effect', { token: 'new' }));
    expect(ran()).toEqual(['worker-1 ', 'worker-1 new']);
  });

  it('[WRK-TAKEOVER] requests whose history retention took are failed as in doubt, those after it run', async () => {
    const first = await openWith(31);
    await bench.ended(await bench.call('k', 1, 'effect'));
    const doubtful = await bench.call('k', 2, 'effect', { ms: 600_000 });
    await bench.until(() => bench.runs.length === 2);
    first.crash();
    bench.store.controls.evictBefore(EVENTS, bench.records(EVENTS).at(-1)!.offset + 1);
    await bench.attach('k');
    const later = await bench.call('k', 3, 'effect', { token: 'later' });
    await bench.start(QUICK);
    expect(errorOf((await bench.ended(doubtful)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(textOf((await bench.ended(later)).messages[0])).toBe('effect later');
    expect(bench.runs).toHaveLength(3);
  });

  it('[WRK-TAKEOVER] evicted client messages are not waited for', async () => {
    const first = await openWith(32);
    await bench.time.advance(5000);
    first.crash();
    await bench.call('k', 1, 'effect');
    bench.store.controls.evictBefore(INBOUND, bench.records(INBOUND).at(-1)!.offset + 1);
    await bench.start(QUICK);
    await bench.ended(await bench.call('k', 2, 'effect', { token: 't' }));
    expect(ran()).toEqual(['worker-2 t']);
  });
});

const isEnd = (key: Uint8Array | null | undefined): boolean =>
  new TextDecoder().decode(key ?? undefined).endsWith('/end');

const isControl = ({ headers }: { readonly headers: readonly (readonly [string, Uint8Array])[] }): boolean =>
  headers.every(([name, value]) => name !== 'type' || new TextDecoder().decode(value) !== 'message');
