/** Calls of living sessions, through a whole worker. */
import { LogError } from '@throughline/log';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeText } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { noMetrics } from '@throughline/telemetry';
import type { Metrics } from '@throughline/telemetry';
import { sent } from '@throughline/testkit';
import { errorOf, methodsOf, progressOf, textOf } from './testing/messages.ts';
import { DEAD_LETTER, EVENTS, INBOUND, openBench, SESSIONS } from './testing/worker-bench.ts';
import type { Bench } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const headers = (record: LogRecord): Record<string, string> =>
  Object.fromEntries(record.headers.map(([name, value]) => [name, new TextDecoder().decode(value)]));
const call = (id: number, name: string, args: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

describe('a call', () => {
  it('[WRK-SETTLE] a question that is asked for a call that is over reaches nobody, and its server hears so', async () => {
    bench = await openBench(91);
    const { host } = await bench.start();
    await bench.open('k');
    const at = await bench.call('k', 1, 'effect');
    await bench.ended(at);
    const other = await bench.call('k', 2, 'hang');
    await bench.until(() => bench.runs.length === 2);
    await host.opened[0]?.ask('elicitation/create', 1);
    await bench.time.advance(1000);
    expect(host.opened[0]?.received.at(-1)).toMatchObject({ id: 1, error: { data: { code: 'SERVER_FAILED' } } });
    expect([bench.stream(`r${other}`).messages, bench.stream('s').messages]).toEqual([[], []]);
  });

  it('[WRK-SETTLE] its messages come on its own stream in order, and the answer ends it', async () => {
    bench = await openBench(1);
    await bench.start();
    await bench.open('k');
    const at = await bench.call('k', 1, 'countdown', { count: 3, ms: 100 });
    const { messages, ends, late } = await bench.ended(at);
    expect(progressOf(messages)).toEqual([1, 2, 3]);
    expect(textOf(messages.at(-1))).toBe('countdown ');
    expect([messages.length, ends, late]).toEqual([4, 1, 0]);
  });

  it('[WRK-SETTLE] [LIM-LARGE] a result larger than a record ends its call with an error, and the worker goes on', async () => {
    bench = await openBench(2, { maxRecordBytes: 20_000 });
    await bench.start();
    await bench.open('k');
    const large = await bench.ended(await bench.call('k', 1, 'effect', { bytes: 30_000 }));
    expect(errorOf(large.messages[0])?.code).toBe('RESULT_TOO_LARGE');
    expect(textOf((await bench.ended(await bench.call('k', 2, 'effect'))).messages[0])).toBe('effect ');
  });

  it('[WRK-EFFECTS] a call with effects reaches the server only after its start was read back', async () => {
    bench = await openBench(3);
    let gate = Promise.withResolvers<null>();
    gate.resolve(null);
    const { host } = await bench.start({
      wrap: (log) => ({
        ...log,
        read: async (from, position, options) => {
          const batch = await log.read(from, position, options);
          if (from.topic === 'events') await gate.promise;
          return batch;
        },
      }),
    });
    await bench.open('k');
    gate = Promise.withResolvers<null>();
    const at = await bench.call('k', 1, 'effect', { token: 't' });
    await bench.time.advance(500);
    const started = bench.accepted().filter(({ body }) => body.type === 'started' && body.stream.at === at);
    expect(started).toHaveLength(1);
    expect(bench.runs).toEqual([]);
    gate.resolve(null);
    await bench.ended(at);
    expect(bench.runs.map(({ token }) => token)).toEqual(['t']);
    expect(host.opened).toHaveLength(1);
  });

  it('[WRK-EFFECTS] a call without effects is not held up, and leaves no record of its start if it is quick', async () => {
    bench = await openBench(4);
    await bench.start();
    await bench.open('k');
    const quick = await bench.call('k', 1, 'lookup');
    await bench.ended(quick);
    const slow = await bench.call('k', 2, 'lookup', { ms: 50 });
    await bench.ended(slow);
    const started = bench.accepted().flatMap(({ body }) => (body.type === 'started' ? [body.stream.at] : []));
    expect(started).toContain(slow);
    expect(started).not.toContain(quick);
  });

  it('[WRK-CANCEL] a cancelled call ends without a message, and its server is told', async () => {
    bench = await openBench(5);
    const { host } = await bench.start();
    await bench.open('k');
    const at = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    const { messages, ends } = await bench.ended(at);
    expect([messages.length, ends]).toEqual([0, 1]);
    expect(host.opened[0]?.methods).toContain('notifications/cancelled');
  });

  it('[WRK-CANCEL] a call that is cancelled while it waits never reaches the server', async () => {
    bench = await openBench(6);
    await bench.start({ config: { maxRunningPerSession: 1 } });
    await bench.open('k');
    const first = await bench.call('k', 1, 'effect', { ms: 500 });
    const second = await bench.call('k', 2, 'effect', { token: 'never' });
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    expect((await bench.ended(second)).messages).toEqual([]);
    await bench.ended(first);
    await bench.time.advance(1000);
    expect(bench.runs.map(({ token }) => token)).toEqual(['']);
  });

  it('[WRK-CANCEL] a call that is cancelled while its server starts never reaches it', async () => {
    bench = await openBench(25);
    const { host } = await bench.start({ host: { openMs: 500 }, config: { unloadAfterMs: 1000 } });
    await bench.open('k');
    await bench.until(() => host.opened[0]?.isClosed === true);
    const first = await bench.call('k', 1, 'effect', { token: 'a' });
    const second = await bench.call('k', 2, 'effect', { token: 'b' });
    await bench.time.advance(100);
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    await bench.ended(first);
    await bench.ended(second);
    await bench.time.advance(1000);
    expect(bench.runs.map(({ token }) => token)).toEqual(['a']);
  });

  it('[WRK-PLACES] beyond the places requests wait, and beyond the queue they are refused', async () => {
    bench = await openBench(7);
    await bench.start({ config: { maxRunningPerSession: 1, maxQueuedPerSession: 1 } });
    await bench.open('k');
    const offsets = [];
    for (const id of [1, 2, 3]) offsets.push(await bench.call('k', id, 'effect', { ms: 100, token: String(id) }));
    const streams = [];
    for (const at of offsets) streams.push(await bench.ended(at));
    expect(streams.map(({ messages }) => textOf(messages[0]))).toEqual(['effect 1', 'effect 2', null]);
    expect(errorOf(streams[2]?.messages[0])?.code).toBe('CAPACITY');
  });

  it('[WRK-PLACES] a session with a long queue delays another by one request', async () => {
    bench = await openBench(8);
    await bench.start({ config: { maxRunning: 1, maxRunningPerSession: 1 } });
    await bench.open('busy');
    await bench.open('calm');
    for (let id = 1; id <= 20; id++) await bench.call('busy', id, 'effect', { ms: 100, token: `b${id}` });
    await bench.until(() => bench.runs.length === 1);
    await bench.ended(await bench.call('calm', 1, 'effect', { ms: 100, token: 'calm' }));
    expect(bench.runs.map(({ token }) => token)).toEqual(['b1', 'b2', 'calm', 'b3'].slice(0, bench.runs.length));
  });

  it('[WRK-PASS] a ping and a new session need no place: long calls of others do not shut a client out', async () => {
    bench = await openBench(18);
    await bench.start({ config: { maxRunning: 1 } });
    await bench.open('busy');
    await bench.call('busy', 1, 'hang');
    await bench.call('busy', 2, 'hang');
    await bench.open('calm');
    const [ping = -1] = await bench.post('calm', { jsonrpc: '2.0', id: 7, method: 'ping' });
    expect((await bench.ended(ping)).messages).toEqual([{ jsonrpc: '2.0', id: 7, result: {} }]);
  });

  it('[WRK-PASS] an answer of the client passes its own full queue', async () => {
    bench = await openBench(9);
    await bench.start({ config: { maxRunningPerSession: 1 } });
    await bench.open('k');
    const at = await bench.call('k', 1, 'ask');
    await bench.call('k', 2, 'effect');
    await bench.until(() => methodsOf(bench.stream(`r${at}`).messages).includes('elicitation/create'));
    const [asked] = bench.stream(`r${at}`).messages;
    await bench.post('k', { jsonrpc: '2.0', id: (asked as { id: string }).id, result: { action: 'accept' } });
    await bench.until(() => bench.runs.length === 1);
    await bench.time.advance(100);
    expect(bench.stream(`r${at}`).messages.map((message) => 'method' in message)).toEqual([true]);
  });

  it('[WRK-ORDER] the server gets the messages of a session in the order of the log', async () => {
    bench = await openBench(10);
    const { host } = await bench.start();
    await bench.open('k');
    const sent = Array.from({ length: 20 }, (_, index) => `notifications/n${index}`);
    for (const method of sent) await bench.post('k', { jsonrpc: '2.0', method });
    await bench.until(() => host.opened[0]?.methods.includes('notifications/n19') === true);
    expect(host.opened[0]?.methods).toEqual(['initialize', 'notifications/initialized', ...sent]);
  });
});

describe('a repeated request', () => {
  it('[WRK-ALIAS] of a settled one gets the same messages on its own stream, and does not run again', async () => {
    bench = await openBench(11);
    await bench.start();
    await bench.open('k');
    const first = await bench.ended(await bench.call('k', 1, 'countdown', { count: 2, token: 't' }));
    const second = await bench.ended(await bench.call('k', 1, 'countdown', { count: 2, token: 't' }));
    expect(second.messages).toEqual(first.messages);
    expect([second.ends, bench.runs.length]).toEqual([1, 1]);
  });

  it('[WRK-ALIAS] of a running one gets what was said before and what comes', async () => {
    bench = await openBench(12);
    await bench.start();
    await bench.open('k');
    const args = { count: 4, ms: 100, token: 't' };
    const first = await bench.call('k', 1, 'countdown', args);
    await bench.until(() => progressOf(bench.stream(`r${first}`).messages).length === 2);
    const second = await bench.call('k', 1, 'countdown', args);
    const [one, two] = [await bench.ended(first), await bench.ended(second)];
    expect(progressOf(two.messages)).toEqual([1, 2, 3, 4]);
    expect(two.messages).toEqual(one.messages);
    expect([two.ends, bench.runs.length]).toEqual([1, 1]);
    const alias = bench.accepted().find(({ body }) => body.type === 'alias');
    expect(headers(alias!.record)['stream']).toBe(`r${second}=r${first}`);
  });

  it('[WRK-ALIAS] [SIM-CAUSE] gets them though the log does not answer for a moment while they are read', async () => {
    bench = await openBench(12);
    let failures = 0;
    await bench.start({
      wrap: (log) => ({
        ...log,
        read: (from, position, options) =>
          from.topic === 'events' && options?.waitMs === undefined && failures > 0
            ? (failures--, Promise.reject(new LogError('LOG_UNAVAILABLE', 'no answer')))
            : log.read(from, position, options),
      }),
    });
    await bench.open('k');
    const first = await bench.call('k', 1, 'countdown', { count: 2, token: 't' });
    const { messages } = await bench.ended(first);
    failures = 3;
    const second = await bench.ended(await bench.call('k', 1, 'countdown', { count: 2, token: 't' }));
    expect([failures, second.messages, bench.runs.length]).toEqual([0, messages, 1]);
  });

  it('[WRK-ALIAS] with another body is refused, and the first goes on', async () => {
    bench = await openBench(13);
    await bench.start();
    await bench.open('k');
    const first = await bench.call('k', 1, 'effect', { ms: 100, token: 'a' });
    const second = await bench.ended(await bench.call('k', 1, 'effect', { ms: 100, token: 'b' }));
    expect(second.messages).toMatchObject([{ id: 1, error: { code: -32600, data: { code: 'ID_REUSED' } } }]);
    expect(textOf((await bench.ended(first)).messages[0])).toBe('effect a');
  });

  it('[WRK-ALIAS] of a cancelled one ends with it', async () => {
    bench = await openBench(14);
    await bench.start();
    await bench.open('k');
    const first = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    const second = await bench.call('k', 1, 'hang');
    await bench.time.advance(50);
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    expect([(await bench.ended(first)).ends, (await bench.ended(second)).ends]).toEqual([1, 1]);
  });

  it('[WRK-ALIAS] of one that was cancelled before is told that the outcome is gone', async () => {
    bench = await openBench(23);
    await bench.start();
    await bench.open('k');
    const first = await bench.call('k', 1, 'hang');
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await bench.ended(first);
    const second = await bench.ended(await bench.call('k', 1, 'hang'));
    expect([second.messages.length, errorOf(second.messages[0])?.code]).toEqual([1, 'OWNER_LOST']);
  });

  it('[WRK-ALIAS] of one that says more than may wait for the copy fails, once, and the first goes on', async () => {
    bench = await openBench(24);
    let isHeld = false;
    await bench.start({
      wrap: (log) => ({
        ...log,
        read: async (from, position, options) => {
          // Only copies read without waiting.
          if (from.topic === 'events' && options?.waitMs === undefined)
            while (isHeld) await new Promise<void>((resolve) => bench.time.clock().setTimer(100, resolve));
          return log.read(from, position, options);
        },
      }),
    });
    await bench.open('k');
    const args = { count: 10, ms: 100, bytes: 1024 * 1024 };
    const first = await bench.call('k', 1, 'countdown', args);
    await bench.time.advance(150);
    isHeld = true;
    const second = await bench.call('k', 1, 'countdown', args);
    await bench.time.advance(650);
    isHeld = false;
    const one = await bench.ended(first);
    const two = bench.stream(`r${second}`);
    expect([one.messages.length, two.ends, two.late]).toEqual([11, 1, 0]);
    expect(errorOf(two.messages.at(-1))?.code).toBe('OWNER_LOST');
  });

  it('[WRK-ALIAS] of a batch gets each message once', async () => {
    bench = await openBench(15);
    await bench.start();
    await bench.open('k', { version: '2025-03-26' });
    const batch = [call(1, 'countdown', { count: 2 }), call(2, 'countdown', { count: 2 })];
    const [first = -1] = await bench.post('k', batch, { version: '2025-03-26' });
    const one = await bench.ended(first);
    const [second = -1] = await bench.post('k', batch, { version: '2025-03-26' });
    const two = await bench.ended(second);
    expect(progressOf(one.messages)).toHaveLength(4);
    expect(progressOf(two.messages)).toEqual(progressOf(one.messages));
    expect([two.messages.length, two.ends, bench.runs.length]).toEqual([6, 1, 2]);
  });
});

describe('a batch', () => {
  it('[WRK-BATCH-END] its stream ends with the last answer, and each answer names its request', async () => {
    bench = await openBench(16);
    await bench.start();
    await bench.open('k', { version: '2025-03-26' });
    const batch = [call(1, 'effect', { ms: 200 }), { jsonrpc: '2.0', method: 'notifications/x' }, call(2, 'effect')];
    const [at = -1] = await bench.post('k', batch, { version: '2025-03-26' });
    const { messages, ends, late } = await bench.ended(at);
    expect(messages.map((message) => ('id' in message ? message.id : null))).toEqual([2, 1]);
    expect([ends, late]).toEqual([1, 0]);
    const answers = bench
      .accepted()
      .flatMap(({ body }) => (body.type === 'message' && body.answers !== null ? [body.answers] : []));
    expect(answers).toEqual([at + 2, at]);
  });

  it('[WRK-BATCH-END] whose requests are settled as they come ends once', async () => {
    bench = await openBench(17);
    await bench.start();
    const [at = -1] = await bench.post('nobody', [call(1, 'effect'), call(2, 'effect')], { version: '2025-03-26' });
    const { messages } = await bench.ended(at);
    await bench.time.advance(1000);
    expect(messages.map(errorOf)).toMatchObject([{ code: 'SESSION_ENDED' }, { code: 'SESSION_ENDED' }]);
    expect(bench.stream(`r${at}`).ends).toBe(1);
  });

  it('[WRK-BATCH-END] of which a producer wrote only a part ends all the same', async () => {
    bench = await openBench(18);
    await bench.start();
    await bench.open('k', { version: '2025-03-26' });
    const [at = -1] = await bench.post('k', call(1, 'effect'), { version: '2025-03-26', batch: '0/3' });
    await bench.call('k', 2, 'effect');
    expect((await bench.ended(at)).messages).toHaveLength(1);
  });

  it('[WRK-BATCH-END] [WRK-POISON] with a member that cannot be read ends, with an error for that member', async () => {
    bench = await openBench(19);
    await bench.start();
    await bench.open('k', { version: '2025-03-26' });
    const [at = -1] = await bench.post('k', [call(1, 'effect'), { id: 2 }], { version: '2025-03-26' });
    const { messages, ends } = await bench.ended(at);
    expect(messages.map((message) => ('id' in message ? message.id : 'none')).sort()).toEqual([1, null]);
    expect(ends).toBe(1);
  });
});

/** Metrics that note which records could not be used. */
function countUnreadable(): { readonly counted: unknown[]; readonly metrics: Metrics } {
  const counted: unknown[] = [];
  const add: Metrics['add'] = (name, _by, labels) => {
    if (name === 'throughline_worker_unreadable_total') counted.push(labels);
  };
  return { counted, metrics: { ...noMetrics, add } };
}

describe('what cannot be read', () => {
  it('[WRK-POISON] is copied with its place, ends its stream with an error, and stops nothing', async () => {
    bench = await openBench(20);
    await bench.start();
    await bench.open('k');
    const [unknown] = (await bench.log.append(INBOUND, [{ key: null, value: null, headers: [] }])).offsets;
    const [broken = -1] = await bench.post('k', { jsonrpc: '1.0', id: 7, method: 'x' });
    expect((await bench.ended(broken)).messages).toMatchObject([
      { id: null, error: { data: { code: 'INVALID_REQUEST' } } },
    ]);
    await bench.ended(await bench.call('k', 1, 'effect'));
    const places = bench.records(DEAD_LETTER).map((record) => headers(record)['dead-letter-from']);
    expect(places).toEqual([`inbound/0/${unknown}`, `inbound/0/${broken}`]);
  });

  it('[WRK-POISON] is read no faster than it can be copied', async () => {
    bench = await openBench(26);
    let release = (): void => undefined;
    const isFree = new Promise<void>((resolve) => {
      release = resolve;
    });
    await bench.start({
      wrap: (log) => ({
        ...log,
        append: async (to, records) => {
          if (to.topic === 'dead-letter') await isFree;
          return log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    await bench.log.append(
      INBOUND,
      Array.from({ length: 100 }, () => ({ key: null, value: null, headers: [] })),
    );
    await bench.time.advance(100);
    const at = await bench.call('k', 1, 'lookup');
    await bench.time.advance(5000);
    expect(bench.stream(`r${at}`).messages).toEqual([]);
    release();
    await bench.ended(at);
    expect(bench.records(DEAD_LETTER)).toHaveLength(100);
  });

  it('[WRK-POISON] in events is reported by the next owner if nobody owned the partition', async () => {
    bench = await openBench(21);
    const [at] = (await bench.log.append(EVENTS, [{ key: null, value: null, headers: [] }])).offsets;
    await bench.start();
    await bench.until(() => bench.records(DEAD_LETTER).length > 0);
    expect(headers(bench.records(DEAD_LETTER)[0]!)['dead-letter-from']).toBe(`events/0/${at}`);
  });

  it('[WRK-POISON] of events, in what others wrote there: no JSON-RPC, and no session of that key; the session goes on', async () => {
    const { counted, metrics } = countUnreadable();
    bench = await openBench(27);
    await bench.start({ metrics });
    await bench.open('k');
    const note = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}';
    const { offsets } = await bench.log.append(EVENTS, [
      sent('k', 's', 'nonsense'),
      sent('k', 's', note),
      sent('nobody', 's', note),
    ]);
    await bench.ended(await bench.call('k', 1, 'effect'));
    const copies = bench.records(DEAD_LETTER).map(headers);
    expect(copies.map((copy) => [copy['dead-letter-from'], copy['dead-letter-why']])).toEqual([
      [`events/0/${offsets[0]}`, 'no JSON-RPC message: the value is not JSON'],
      [`events/0/${offsets[2]}`, 'no session of this key in this partition'],
    ]);
    expect(counted).toEqual([{ topic: 'events' }, { topic: 'events' }]);
  });

  it('[WRK-POISON-SESSION] in sessions hides a session until its owner writes it anew, which is counted; a takeover finds it', async () => {
    const { counted, metrics } = countUnreadable();
    bench = await openBench(28);
    const first = await bench.start({ metrics, config: { heartbeatMs: 100, deadAfterMs: 400 } });
    await bench.open('k');
    await bench.log.append(SESSIONS, [
      { key: encodeText('k'), value: encodeText('{"half":'), headers: [] },
      { key: encodeText('no session'), value: encodeText('nonsense'), headers: [] },
    ]);
    await bench.until(() => counted.length > 0);
    await bench.until(() => bench.session('k').record !== null);
    expect(counted).toEqual([{ topic: 'sessions' }]);
    first.crash();
    await bench.start();
    expect((await bench.ended(await bench.call('k', 1, 'effect'))).messages).toMatchObject([{ id: 1, result: {} }]);
  });

  it('[WRK-POISON] is still told when the copy would be larger than a record', async () => {
    bench = await openBench(22, { maxRecordBytes: 4000 });
    await bench.start();
    const value = new Uint8Array(3990);
    await bench.log.append(INBOUND, [{ key: null, value, headers: [] }]);
    await bench.until(() => bench.records(DEAD_LETTER).length > 0);
    expect(bench.records(DEAD_LETTER)[0]?.value).toBeNull();
  });
});
