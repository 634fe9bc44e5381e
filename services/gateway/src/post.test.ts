import { formatStreamLabel } from '@throughline/protocol';
import { sessionEnded, headerOf } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyOf, messageOf, progress, result } from './testing/backend.ts';
import { call, createRig, initialize } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';
import { cursorOf } from './testing/sse-reading.ts';

let rig: Rig;
let peer: Peer;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway();
});
afterEach(() => rig.stop());

const note = { jsonrpc: '2.0', method: 'notifications/initialized' };

describe('requests', () => {
  it('[GW-POST] a request is in the log before it is answered, and its answer is its own stream', async () => {
    const session = await rig.open(peer);
    const exchange = await peer.post(session, call(5));
    const [, request] = await rig.backend.inbound();
    expect(messageOf(request!)).toEqual(call(5));
    expect(exchange.sink.status).toBe(200);
    expect(exchange.sink.headers).toMatchObject({
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
      'Mcp-Session-Id': session,
      'X-MCP-Replay-Epoch': 'aaaaaaaaaa',
    });
    const stream = { kind: 'request', at: request!.offset } as const;
    await rig.backend.say(session, stream, progress(1));
    await rig.backend.say(session, { kind: 'request', at: request!.offset + 1 }, progress(2));
    await rig.backend.say(session, 's', progress(3));
    await rig.backend.say(session, stream, result(5), { end: true });
    await rig.time.run(exchange.done);
    expect(exchange.messages().map(({ data }) => JSON.parse(data) as unknown)).toEqual([progress(1), result(5)]);
    expect(exchange.messages().map(({ cursor }) => cursor.seq)).toEqual([1, 2]);
    expect(exchange.messages().map(({ cursor }) => formatStreamLabel(cursor.stream))).toEqual(['r1', 'r1']);
    expect(exchange.sink.isEnded).toBe(true);
  });

  it('[GW-POST] an answer that comes before the ack of the append is not missed', async () => {
    const session = await rig.open(peer);
    let release = (): void => undefined;
    const slow = await rig.gateway({}, (log) => ({
      ...log,
      async append(to, records) {
        const appended = await log.append(to, records);
        if (to.topic === 'inbound') await new Promise<void>((resolve) => (release = resolve));
        return appended;
      },
    }));
    const exchange = await slow.post(session, call(1));
    expect(exchange.sink.status).toBe(0);
    await rig.backend.say(session, { kind: 'request', at: 1 }, result(1), { end: true });
    await rig.time.settle();
    release();
    await rig.time.run(exchange.done);
    expect(exchange.messages().map(({ data }) => JSON.parse(data) as unknown)).toEqual([result(1)]);
  });

  it('[GW-POST] the record says whose it is, under which revision, and after which event its stream begins', async () => {
    const session = await rig.open(peer, '2025-06-18');
    const end = (await rig.backend.log.bounds({ topic: 'events', partition: 0 })).end;
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await peer.post(session, call(1), { headers: { traceparent } });
    const { record, body, key } = (await rig.backend.inbound()).at(-1)!;
    expect(key).toBe(keyOf(session).key);
    expect(body).toMatchObject({ server: 'demo', version: '2025-06-18', after: end, batch: null });
    expect(headerOf(record, 'principal')).toMatch(/^[\w-]{22}$/);
    expect(headerOf(record, 'traceparent')).toBe(traceparent);
  });

  it.each(['', 'x', '00-0-0-0', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01\u00ff`, 'a'.repeat(10_000)])(
    '[GW-POST] a traceparent that is none is not carried on: %j',
    async (traceparent) => {
      const session = await rig.open(peer);
      const exchange = await peer.post(session, call(1), { headers: { traceparent } });
      expect(exchange.sink.status).toBe(200);
      expect(headerOf((await rig.backend.inbound()).at(-1)!.record, 'traceparent')).toBeUndefined();
    },
  );

  it('[GW-PRIME] clients from 2025-11-25 on get an id and a retry at once; the id names what was read before', async () => {
    const session = await rig.open(peer);
    const end = (await rig.backend.log.bounds({ topic: 'events', partition: 0 })).end;
    const exchange = await peer.post(session, call('id-1'));
    const [primer, ...rest] = exchange.blocks();
    expect(rest).toEqual([]);
    expect(primer).toMatchObject({ data: '' });
    expect(primer?.retry).toBeGreaterThanOrEqual(375);
    expect(primer?.retry).toBeLessThanOrEqual(625);
    expect(cursorOf(primer!.id!)).toMatchObject({
      offset: end - 1,
      seq: 0,
      requestId: 'id-1',
      stream: { kind: 'request' },
    });
  });

  it.each(['2025-03-26', '2025-06-18'])(
    '[GW-PRIME] clients of %s get nothing before the first message',
    async (version) => {
      const session = await rig.open(peer, version);
      const exchange = await peer.post(session, call(1));
      expect(exchange.sink.status).toBe(200);
      expect(exchange.sink.text).toBe('');
    },
  );

  it('[GW-POST] a client that goes is no cancel: its request is in the log and nothing is added', async () => {
    const session = await rig.open(peer);
    const exchange = await peer.post(session, call(1));
    exchange.abort();
    await rig.time.run(exchange.done);
    expect(await rig.backend.inbound()).toHaveLength(2);
    expect(peer.core.exchanges()).toBe(0);
  });
});

describe('notifications and responses', () => {
  it.each([
    note,
    { jsonrpc: '2.0', id: 'srv-1', result: {} },
    { jsonrpc: '2.0', id: 'srv-1', error: { code: 1, message: 'no' } },
  ])('[GW-POST] they are in the log, and answered with 202 and no body: %j', async (message) => {
    const session = await rig.open(peer);
    const exchange = await peer.post(session, message);
    expect(exchange.sink.status).toBe(202);
    expect(exchange.sink.text).toBe('');
    expect(exchange.sink.isEnded).toBe(true);
    expect(messageOf((await rig.backend.inbound()).at(-1)!)).toEqual(message);
  });
});

describe('batches', () => {
  it('[GW-BATCH] a batch of 2025-03-26 is one append of consecutive records with one stream', async () => {
    const session = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(session, [call('a'), note, call('b')]);
    const batch = (await rig.backend.inbound()).slice(1);
    expect(batch.map(({ offset, body }) => [offset, body.type === 'message' && body.batch])).toEqual([
      [1, { index: 0, count: 3, ids: ['a', null, 'b'] }],
      [2, { index: 1, count: 3, ids: ['a', null, 'b'] }],
      [3, { index: 2, count: 3, ids: ['a', null, 'b'] }],
    ]);
    const stream = { kind: 'request', at: 1 } as const;
    await rig.backend.say(session, stream, result('b'), { answers: 3 });
    await rig.backend.say(session, stream, result('a'), { answers: 1, end: true });
    await rig.time.run(exchange.done);
    expect(exchange.messages().map(({ data }) => JSON.parse(data) as unknown)).toEqual([result('b'), result('a')]);
    expect(exchange.messages().map(({ cursor }) => cursor.requestId)).toEqual([undefined, undefined]);
  });

  it('[GW-BATCH] a batch without requests is answered with 202', async () => {
    const session = await rig.open(peer, '2025-03-26');
    expect((await peer.post(session, [note, { jsonrpc: '2.0', id: 1, result: {} }])).sink.status).toBe(202);
  });

  it.each(['2025-06-18', '2025-11-25'])('[GW-BATCH] sessions of %s have no batches', async (version) => {
    const session = await rig.open(peer, version);
    const exchange = await peer.post(session, [call(9)]);
    expect(exchange.sink.status).toBe(400);
    expect(exchange.json()).toMatchObject({ id: 9, error: { code: -32600, data: { code: 'INVALID_REQUEST' } } });
    expect(await rig.backend.inbound()).toHaveLength(1);
  });

  it('[GW-BATCH] when the session ends, each call that is still open fails, and none that was answered', async () => {
    const session = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(session, [call('a'), call('b'), call('c')]);
    await rig.backend.say(session, { kind: 'request', at: 1 }, result('b'), { answers: 2 });
    await rig.backend.events(0, sessionEnded(keyOf(session).key, rig.backend.claims[0]));
    await rig.time.run(exchange.done);
    const failed = exchange.blocks().slice(1);
    expect(failed.map(({ data = '' }) => (JSON.parse(data) as { id: unknown }).id)).toEqual(['a', 'c']);
    // Cut off before the last, the client comes back with the id before, and is told all of it.
    expect(failed.map(({ id }) => id !== undefined && cursorOf(id).seq)).toEqual([false, 'end']);
  });
});

describe('initialize', () => {
  it('[GW-INIT] it makes a session on a partition with a living owner, named in the head of the answer', async () => {
    const exchange = await peer.send('POST', initialize('2025-11-25'));
    const session = exchange.sink.headers['Mcp-Session-Id']!;
    expect(session).toMatch(/^[\x21-\x7e]{1,128}$/);
    expect(keyOf(session)).toMatchObject({
      epoch: 'aaaaaaaaaa',
      partition: 0,
      from: 2,
      createdMs: Date.UTC(2026, 0, 1),
    });
    const [request] = await rig.backend.inbound();
    expect(request).toMatchObject({ key: keyOf(session).key, body: { version: '2025-11-25', after: 2 } });
  });

  it('[GW-INIT] two sessions have two keys', async () => {
    const [a, b] = [await rig.open(peer), await rig.open(peer)];
    expect(keyOf(a).key).not.toBe(keyOf(b).key);
  });

  it.each([
    ['2025-11-25', '2025-11-25', true],
    ['2025-06-18', '2025-06-18', false],
    ['2024-11-05', '2025-03-26', false],
    ['2099-01-01', '2025-03-26', false],
    ['', '2025-03-26', false],
  ])('[GW-INIT] asked for %j it goes to the server as %s, primed: %s', async (asked, version, isPrimed) => {
    const exchange = await peer.send('POST', initialize(asked));
    expect(exchange.sink.status).toBe(200);
    expect((await rig.backend.inbound())[0]?.body).toMatchObject({ version });
    expect(exchange.blocks().length > 0).toBe(isPrimed);
  });

  it('[GW-INIT] nothing of it depends on MCP-Protocol-Version', async () => {
    const exchange = await peer.send('POST', initialize('2025-11-25'), {
      headers: { 'mcp-protocol-version': 'nonsense' },
    });
    expect(exchange.sink.status).toBe(200);
  });

  it.each([
    ['none ever was', []],
    ['it serves no partition', [{ partitions: [] }]],
    ['it is leaving', [{ partitions: [0], leaving: true }]],
    ['it serves another epoch', [{ partitions: [0], epoch: 'bbbbbbbbbb' }]],
  ])('[GW-INIT] without an owner (%s) it is refused with 503, and nothing is appended', async (_why, beats) => {
    const other = await createRig({ seed: 2 });
    for (const beat of beats) await other.backend.heartbeat(beat);
    const exchange = await (await other.gateway()).send('POST', initialize('2025-11-25', 'x'));
    expect(exchange.sink.status).toBe(503);
    expect(exchange.sink.headers).toMatchObject({ 'Retry-After': '1' });
    expect(exchange.json()).toMatchObject({ id: 'x', error: { data: { code: 'NO_OWNER', retry: 'after-backoff' } } });
    expect(await other.backend.inbound()).toEqual([]);
    await other.stop();
  });

  it('[GW-INIT] an owner whose heartbeats have stopped takes no new sessions', async () => {
    const late = await rig.gateway({ deadAfterMs: 4000 });
    await rig.time.advance(3900);
    expect((await late.send('POST', initialize('2025-11-25'))).sink.status).toBe(200);
    await rig.time.advance(200);
    expect((await late.send('POST', initialize('2025-11-25'))).sink.status).toBe(503);
  });

  it('[GW-INIT] with several partitions a session goes to one that is served', async () => {
    const other = await createRig({ partitions: 4, seed: 3 });
    await other.backend.startWorker();
    await other.backend.heartbeat({ partitions: [1, 3], beat: 2 });
    const gateway = await other.gateway();
    const partitions = new Set<number>();
    for (let run = 0; run < 30; run++) partitions.add(keyOf(await other.open(gateway)).partition);
    expect([...partitions].sort()).toEqual([1, 3]);
    await other.stop();
  });

  it.each([
    ['in a batch', (s: string) => [[initialize('2025-03-26', 4)], s === '' ? {} : {}], -32600],
    ['with a session', (s: string) => [initialize('2025-11-25', 4), { 'mcp-session-id': s }], -32600],
    ['without a version', () => [call(4, 'initialize', {}), {}], -32600],
    ['with a version that is no text', () => [call(4, 'initialize', { protocolVersion: 20251125 }), {}], -32600],
  ] as const)('[GW-INIT] %s it is refused by name, and nothing is appended', async (_how, make, code) => {
    const session = await rig.open(peer);
    const [body, headers] = make(session) as [unknown, Record<string, string>];
    const exchange = await peer.send('POST', body, { headers });
    expect(exchange.sink.status).toBe(400);
    expect(exchange.json()).toMatchObject({ id: 4, error: { code } });
    expect(await rig.backend.inbound()).toHaveLength(1);
  });
});
