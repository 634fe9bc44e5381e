/** Section 7 of the design, row by row, through the gateway. */
import { formatEventId, signSessionId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import { attached, sent, streamEnded } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyOf, OTHER_EPOCH, EPOCH, progress, result } from './testing/backend.ts';
import { OTHER_SECRET, SECRET, call, createRig, dataOf } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';
import { cursorOf, lastIdOf } from './testing/sse-reading.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
let rig: Rig;
let peer: Peer;
let session: string;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway();
  session = await rig.open(peer);
});
afterEach(() => rig.stop());

/** A call that was told two of four messages, then lost its connection. */
async function interruptedCall(id: string | number = 'c1', version = '2025-11-25') {
  if (version !== '2025-11-25') session = await rig.open(peer, version);
  const exchange = await peer.post(session, call(id));
  const at = (await rig.backend.inbound()).at(-1)!.offset;
  const stream = { kind: 'request', at } as const;
  await rig.backend.say(session, stream, progress(1));
  await rig.backend.say(session, stream, progress(2));
  await rig.time.settle();
  exchange.abort();
  await rig.time.run(exchange.done);
  return { stream, exchange, id: lastIdOf(exchange.sink.text) };
}

async function interruptedStandalone() {
  const exchange = await peer.get(session);
  await rig.backend.say(session, 's', progress(1));
  await rig.time.settle();
  exchange.abort();
  await rig.time.run(exchange.done);
  return { exchange, id: lastIdOf(exchange.sink.text) };
}

const changed = (id: string, change: Partial<EventId>): string => formatEventId({ ...cursorOf(id), ...change });

describe('a resume that is granted', () => {
  it('[GW-RESUME] goes on after the cursor on any gateway, each message once, with the ids an uninterrupted reader has', async () => {
    const watched = await peer.post(session, call('c1'));
    const stream = { kind: 'request', at: 1 } as const;
    await rig.backend.say(session, stream, progress(1));
    await rig.backend.say(session, stream, progress(2));
    await rig.time.settle();
    const ids = watched.messages().map(({ id }) => id);
    const other = await rig.gateway();
    const resumed = await other.get(session, ids[0]);
    await rig.backend.say(session, stream, progress(3));
    await rig.backend.say(session, stream, result('c1'), { end: true });
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([progress(2), progress(3), result('c1')]);
    expect(resumed.messages()[0]?.id).toBe(ids[1]);
    const again = await peer.get(session, ids[1]);
    await rig.time.run(again.done);
    expect(again.messages().map(({ id }) => id)).toEqual(
      resumed
        .messages()
        .slice(1)
        .map(({ id }) => id),
    );
  });

  it('[GW-RESUME] says where it begins, what is replay, where live begins, and repeats the cursor first', async () => {
    const { stream, id } = await interruptedCall();
    await rig.backend.say(session, stream, progress(3));
    const resumed = await peer.get(session, id);
    expect(resumed.sink.headers).toMatchObject({
      'Content-Type': 'text/event-stream',
      'Mcp-Session-Id': session,
      'X-MCP-Replay-Epoch': EPOCH,
      'X-MCP-Replay-From': `0.${cursorOf(id).offset}`,
    });
    const [replay, primer, missed, live, moved] = resumed.blocks();
    expect(replay).toEqual({ comment: 'replay' });
    expect(primer).toMatchObject({ id, data: '' });
    expect(JSON.parse(missed!.data!)).toEqual(progress(3));
    const attachedAt = (await rig.backend.log.bounds(EVENTS)).end - 1;
    expect(live?.comment).toMatch(/^live /);
    expect(cursorOf(live!.comment!.slice(5))).toMatchObject({ offset: attachedAt, seq: 3 });
    expect(moved).toMatchObject({ id: live!.comment!.slice(5), data: '' });
    expect(resumed.blocks()).toHaveLength(5);
  });

  it.each(['2025-03-26', '2025-06-18'])(
    '[GW-RESUME] clients of %s, which cannot read empty data, are not primed',
    async (version) => {
      const { stream, id } = await interruptedCall('c1', version);
      const resumed = await peer.get(session, id);
      expect(resumed.blocks().filter(({ data }) => data === '')).toEqual([]);
      await rig.backend.say(session, stream, result('c1'), { end: true });
      await rig.time.run(resumed.done);
      expect(dataOf(resumed)).toEqual([result('c1')]);
    },
  );

  it('[GW-RESUME] at the primer, before any message, gives the whole stream', async () => {
    const exchange = await peer.post(session, call(1));
    const primer = lastIdOf(exchange.sink.text);
    await rig.backend.say(session, { kind: 'request', at: 1 }, result(1), { end: true });
    await rig.time.run(exchange.done);
    const resumed = await peer.get(session, primer);
    await rig.time.run(resumed.done);
    expect(resumed.messages()).toEqual(exchange.messages());
  });

  it('[GW-RESUME] a standalone stream goes on as the same stream', async () => {
    const { exchange, id } = await interruptedStandalone();
    await rig.backend.say(session, 's', progress(2));
    const resumed = await peer.get(session, id);
    await rig.backend.say(session, 's', progress(3));
    await rig.time.settle();
    expect(dataOf(resumed)).toEqual([progress(2), progress(3)]);
    expect(resumed.messages().map(({ cursor }) => cursor.seq)).toEqual([2, 3]);
    expect(resumed.messages()[0]?.cursor.stream).toEqual(exchange.messages()[0]?.cursor.stream);
  });

  it('[GW-RESUME] works from the log too, when the cache has gone on', async () => {
    const tiny = await rig.gateway({ cacheBytes: 1024 });
    const { stream, id } = await interruptedCall();
    for (let step = 3; step <= 50; step++) await rig.backend.say(session, stream, progress(step));
    await rig.backend.say(session, stream, result('c1'), { end: true });
    const resumed = await tiny.get(session, id);
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([...Array.from({ length: 48 }, (_, index) => progress(index + 3)), result('c1')]);
  });

  /** Messages 3 to 10 of an interrupted call, none of them within one read of another. */
  async function scattered() {
    const { stream, id } = await interruptedCall();
    const offsets: number[] = [];
    for (let step = 3; step <= 10; step++) {
      offsets.push(await rig.backend.say(session, stream, progress(step)));
      await rig.backend.events(0, sent('other', 's', JSON.stringify({ text: 'x'.repeat(300_000) })));
    }
    return { stream, id, offsets };
  }

  it('[GW-CATCHUP] what lies scattered in the log comes in few writes', async () => {
    const { stream, id } = await scattered();
    await rig.backend.say(session, stream, result('c1'), { end: true });
    const resumed = await (await rig.gateway({ cacheBytes: 1024 })).get(session, id);
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([3, 4, 5, 6, 7, 8, 9, 10].map((step) => progress(step)).concat(result('c1')));
    expect(resumed.sink.writes).toBeLessThanOrEqual(2);
  });

  it('[GW-CATCHUP] what was read is not held back while the log does not answer', async () => {
    const { id, offsets } = await scattered();
    const stuck = await rig.gateway({ cacheBytes: 1024 }, (log) => ({
      ...log,
      read: (ref, position, options) =>
        ref.topic === 'events' && position > (offsets[3] ?? 0) && options?.maxBytes === 256 * 1024
          ? new Promise((_, reject) => options.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
          : log.read(ref, position, options),
    }));
    const resumed = await stuck.get(session, id);
    await rig.time.advance(200);
    expect(dataOf(resumed)).toEqual([3, 4, 5, 6].map((step) => progress(step)));
  });

  it('[GW-RESUME] waits for a record that a faster gateway has delivered and this one has not read yet', async () => {
    let hold: Promise<void> | null = null;
    let release = (): void => undefined;
    const lagging = await rig.gateway({}, (log) => ({
      ...log,
      async read(from, position, options) {
        const batch = await log.read(from, position, options);
        if (from.topic === 'events' && hold !== null) await hold;
        return batch;
      },
    }));
    const watched = await lagging.post(session, call('c0'));
    watched.abort();
    hold = new Promise((resolve) => (release = resolve));
    const fast = await peer.post(session, call('c1'));
    await rig.backend.say(session, { kind: 'request', at: 2 }, progress(1));
    await rig.time.settle();
    const resumed = await lagging.get(session, lastIdOf(fast.sink.text));
    expect(resumed.sink.status).toBe(0);
    hold = null;
    release();
    await rig.time.settle();
    expect(resumed.sink.status).toBe(200);
    await rig.backend.say(session, { kind: 'request', at: 2 }, result('c1'), { end: true });
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([result('c1')]);
  });
});

describe('a stream of which nothing is left', () => {
  it('[GW-FINISHED] the last id of a finished request stream gets 204', async () => {
    const exchange = await peer.post(session, call(1));
    await rig.backend.say(session, { kind: 'request', at: 1 }, result(1), { end: true });
    await rig.time.run(exchange.done);
    const again = await peer.get(session, lastIdOf(exchange.sink.text));
    expect(again.sink.status).toBe(204);
    expect(again.sink.text).toBe('');
  });

  it('[GW-FINISHED] a cancelled call closes its stream without a message; then it gets 204, from the primer as well', async () => {
    const exchange = await peer.post(session, call(1));
    const primer = lastIdOf(exchange.sink.text);
    await rig.backend.events(0, streamEnded(keyOf(session).key, { kind: 'request', at: 1 }, rig.backend.claims[0]));
    await rig.time.run(exchange.done);
    expect(exchange.messages()).toEqual([]);
    expect((await peer.get(session, primer)).sink.status).toBe(204);
  });

  it('[GW-FINISHED] so it is however much of other streams lies between', async () => {
    const exchange = await peer.post(session, call(1));
    const primer = lastIdOf(exchange.sink.text);
    for (let step = 0; step < 600; step++) await rig.backend.say(session, 's', progress(step));
    await rig.backend.events(0, streamEnded(keyOf(session).key, { kind: 'request', at: 1 }, rig.backend.claims[0]));
    await rig.time.run(exchange.done);
    expect((await peer.get(session, primer)).sink.status).toBe(204);
  });

  it('[GW-FINISHED] an old standalone stream with nothing left gets 204, and what is left is delivered first', async () => {
    const { id } = await interruptedStandalone();
    await rig.backend.say(session, 's', progress(2));
    const newer = await peer.get(session);
    const old = await peer.get(session, id);
    await rig.time.run(old.done);
    expect(dataOf(old)).toEqual([progress(2)]);
    expect((await peer.get(session, lastIdOf(old.sink.text))).sink.status).toBe(204);
    expect(newer.sink.isEnded).toBe(false);
  });
});

type Reason =
  'cursor-malformed' | 'cursor-foreign' | 'epoch-mismatch' | 'gap' | 'beyond-end' | 'diverged' | 'session-ended';

/** Makes a cursor that is refused; both kinds of stream. */
const REASONS: readonly [Reason, (id: string) => Promise<string> | string, 400 | 404, number][] = [
  ['cursor-malformed', () => 'nonsense', 400, -32000],
  ['cursor-malformed', (id) => `${id}x`, 400, -32000],
  ['cursor-malformed', () => '.'.repeat(10_000), 400, -32000],
  ['cursor-malformed', () => 'ÿ\u0080日'.slice(0, 2), 400, -32000],
  ['cursor-foreign', (id) => changed(id, { tag: new Uint8Array(4) }), 400, -32000],
  ['cursor-foreign', (id) => changed(id, { partition: 1 }), 400, -32000],
  ['cursor-foreign', (id) => changed(id, { stream: { ...cursorOf(id).stream, at: 77 } }), 400, -32000],
  ['epoch-mismatch', (id) => changed(id, { epoch: OTHER_EPOCH }), 404, -32000],
  [
    'gap',
    async (id) => {
      const end = await rig.backend.events(0, attached('someone', 's', 'x'));
      rig.backend.log.controls.evictBefore(EVENTS, end[0]! + 1);
      return id;
    },
    404,
    -32000,
  ],
  ['beyond-end', async (id) => changed(id, { offset: (await rig.backend.log.bounds(EVENTS)).end }), 404, -32000],
  ['beyond-end', (id) => changed(id, { offset: 1_000_000 }), 404, -32000],
  ['beyond-end', (id) => changed(id, { offset: Number.MAX_SAFE_INTEGER }), 404, -32000],
  ['diverged', (id) => changed(id, { crc: cursorOf(id).crc ^ 1 }), 404, -32000],
  ['diverged', (id) => changed(id, { offset: cursorOf(id).offset - 1 }), 404, -32000],
  [
    'session-ended',
    async (id) => {
      await rig.backend.endSession(session);
      await rig.time.settle();
      return id;
    },
    404,
    -32000,
  ],
];

/** A gateway that has nothing in its cache, so that eviction shows. */
const cold = () => rig.gateway({ cacheBytes: 1024 });

describe('a resume that is refused', () => {
  it.each(REASONS)('[GW-REFUSED] %s on a request stream (%#)', async (reason, make, status) => {
    const watching = await peer.get(session);
    const bystander = await rig.open(peer);
    const theirs = await peer.post(bystander, call('theirs'));
    const { id } = await interruptedCall();
    const gateway = await cold();
    const asked = await make(id);
    const refused = await gateway.get(session, asked);
    await rig.time.run(refused.done);
    const lives = status === 400;
    const error = {
      data: {
        type: 'ResumptionRejected',
        reason,
        action: lives ? 'correct-cursor' : 'reinitialize',
        requested: asked.slice(0, 160),
      },
    };
    if (lives) {
      expect(refused.sink.status).toBe(400);
      expect(refused.json()).toMatchObject({ id: null, error });
    } else {
      expect(refused.sink.status).toBe(200);
      expect(refused.sink.headers).toMatchObject({ 'Content-Type': 'text/event-stream', 'Mcp-Session-Id': session });
      const [message, ...rest] = refused.messages();
      expect(rest).toEqual([]);
      expect(JSON.parse(message!.data)).toMatchObject({ id: 'c1', error });
      expect(JSON.parse(message!.data)).toMatchObject({ error: { data: { available: { epoch: EPOCH } } } });
      expect(message!.cursor.seq).toBe('end');
      const terminal = await gateway.get(session, message!.id);
      expect([terminal.sink.status, terminal.sink.text]).toEqual([204, '']);
    }
    expect((await gateway.post(session, call(2))).sink.status).toBe(lives ? 200 : 404);
    // Whoever else is there notices nothing.
    expect(theirs.sink.isEnded).toBe(false);
    expect((await gateway.post(bystander, call(2))).sink.status).toBe(200);
    expect(rig.backend.log.store.partition({ topic: 'meta', partition: 0 }).count).toBe(2);
    watching.abort();
  });

  it.each(REASONS)('[GW-REFUSED] %s on a standalone stream (%#)', async (reason, make, status) => {
    const { id } = await interruptedStandalone();
    const gateway = await cold();
    const asked = await make(id);
    const refused = await gateway.get(session, asked);
    await rig.time.run(refused.done);
    expect(refused.sink.status).toBe(status);
    expect(refused.json()).toMatchObject({
      id: null,
      error: {
        data: {
          type: 'ResumptionRejected',
          reason,
          action: status === 400 ? 'correct-cursor' : 'reinitialize',
          requested: asked.slice(0, 160),
        },
      },
    });
    expect((await gateway.post(session, call(2))).sink.status).toBe(status === 400 ? 200 : 404);
  });

  it('[GW-REFUSED] of a session that is over, whatever the cursor is, so that the client begins anew', async () => {
    await rig.backend.endSession(session);
    await rig.time.settle();
    const refused = await peer.get(session, 'nonsense');
    expect(refused.sink.status).toBe(404);
    expect(refused.json()).toMatchObject({ error: { data: { reason: 'session-ended', action: 'reinitialize' } } });
  });

  it("[GW-REFUSED] another session's cursor gives nothing away and ends nobody's session", async () => {
    const { id } = await interruptedCall();
    const mallory = await rig.open(peer);
    const refused = await peer.get(mallory, id);
    expect(refused.sink.status).toBe(400);
    expect(refused.json()).toMatchObject({ error: { data: { reason: 'cursor-foreign' } } });
    expect((await peer.post(session, call(2))).sink.status).toBe(200);
    expect((await peer.post(mallory, call(2))).sink.status).toBe(200);
  });

  it('[GW-REFUSED] the worker is told, so that what is pending in the session fails', async () => {
    const { id } = await interruptedCall();
    await peer.get(session, changed(id, { crc: 0 }));
    expect((await rig.backend.inbound()).at(-1)).toMatchObject({
      key: keyOf(session).key,
      body: { type: 'sessionEnd' },
    });
  });

  it('[GW-REFUSED] is not told before the end of the session is recorded: 503 until then', async () => {
    const { id } = await interruptedCall();
    const asked = changed(id, { crc: 0 });
    const deaf = await rig.gateway({}, (log) => ({
      ...log,
      append: (to, records) => {
        rig.backend.log.controls.failAppends(to.topic === 'inbound' ? 'refused' : null);
        const appended = rig.backend.log.append(to, records);
        rig.backend.log.controls.failAppends(null);
        return appended;
      },
    }));
    expect((await deaf.get(session, asked)).sink.status).toBe(503);
    expect((await peer.post(session, call(2))).sink.status).toBe(200);
    expect((await peer.get(session, asked)).messages()[0]?.data).toContain('diverged');
  });

  it('[GW-REFUSED] that it is beyond the end is not said before an append proves it: 503 until then', async () => {
    const { id } = await interruptedCall();
    const asked = changed(id, { offset: 1_000_000 });
    rig.backend.log.controls.failAppends('refused');
    const unproved = await peer.get(session, asked);
    expect(unproved.sink.status).toBe(503);
    rig.backend.log.controls.failAppends(null);
    expect((await peer.post(session, call(2))).sink.status).toBe(200);
  });

  it('[GW-REFUSED] answers the call whose id does not fit into the cursor, from its record', async () => {
    const { id } = await interruptedCall('an id with spaces and ünicode');
    expect(cursorOf(id).requestId).toBeUndefined();
    const refused = await peer.get(session, changed(id, { crc: 0 }));
    await rig.time.run(refused.done);
    expect(JSON.parse(refused.messages()[0]!.data)).toMatchObject({ id: 'an id with spaces and ünicode', error: {} });
  });

  it('[GW-REFUSED] answers each call of a batch', async () => {
    session = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(session, [call('a'), { jsonrpc: '2.0', method: 'n' }, call('b')]);
    const at = (await rig.backend.inbound()).at(-1)!.offset - 2;
    await rig.backend.say(session, { kind: 'request', at }, progress(1));
    await rig.time.settle();
    // Another request follows directly: it is not of this batch.
    await peer.post(session, call('other'));
    const refused = await peer.get(session, changed(lastIdOf(exchange.sink.text), { crc: 0 }));
    await rig.time.run(refused.done);
    const failed = refused.blocks();
    expect(failed.map(({ data = '' }) => (JSON.parse(data) as { id: unknown }).id)).toEqual(['a', 'b']);
    // Cut off before the last, the client comes back with the same cursor, and is told all of it.
    expect(failed.map(({ id }) => id !== undefined && cursorOf(id).seq)).toEqual([false, 'end']);
  });

  it('[GW-REFUSED] retention that passes an open stream is told in-band', async () => {
    const tiny = await rig.gateway({ cacheBytes: 1024, keepAliveMs: 1000 });
    const exchange = await tiny.post(session, call('c1'), { isBlocked: true });
    const stream = { kind: 'request', at: 1 } as const;
    let last = 0;
    for (let step = 1; step <= 40; step++) last = await rig.backend.say(session, stream, progress(step));
    await rig.time.settle();
    rig.backend.log.controls.evictBefore(EVENTS, last);
    exchange.sink.unblock();
    await rig.time.run(exchange.done);
    const messages = dataOf(exchange) as { id?: unknown; error?: { data: object } }[];
    expect(messages.at(-1)).toMatchObject({ id: 'c1', error: { data: { reason: 'gap', action: 'reinitialize' } } });
    expect(messages.slice(0, -1)).toEqual(messages.slice(0, -1).map((_, index) => progress(index + 1)));
    expect((await tiny.post(session, call(2))).sink.status).toBe(404);
  });

  it('[GW-REFUSED] by a gateway with another secret the session is not found at all', async () => {
    const { id } = await interruptedCall();
    const stranger = await rig.gateway({ secrets: [OTHER_SECRET] });
    const refused = await stranger.get(session, id);
    expect(refused.sink.status).toBe(404);
    expect(refused.json()).toMatchObject({ error: { data: { code: 'SESSION_NOT_FOUND' } } });
    expect(signSessionId(keyOf(session), { principal: 'anonymous', server: 'demo' }, SECRET)).toBe(session);
  });
});
