import type { EventStore as EventStoreV2 } from '@modelcontextprotocol/server';
import type { EventStore as EventStoreV1 } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { randomUUID } from 'node:crypto';
import { systemClock } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { openSqliteLog } from '@throughline/log/sqlite';
import { encodeText, extendChain, parseEventId, signSessionId, startChain } from '@throughline/protocol';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { hasEventStoreCode, ResumeRefused } from './errors.ts';
import { openEventStore } from './event-store.ts';
import type { SessionEvents } from './session-events.ts';
import { memoryStores, note, replay, SECRET } from './testing/open-stores.ts';
import { INITIALIZE } from './testing/sdk-server.ts';

const STANDALONE = '_GET_stream';

async function reasonOf(events: SessionEvents, id: string): Promise<string | undefined> {
  const refused: unknown = await replay(events, id).then(
    () => 'replayed',
    (error: unknown) => error,
  );
  if (!(refused instanceof ResumeRefused)) throw new Error(`not refused: ${String(refused)}`);
  expect((await events.judge(id))?.reason).toBe(refused.reason);
  return refused.reason;
}

describe.each(['memory', 'sqlite'])('the event store on %s', (driver) => {
  const open = async (folder: string) =>
    driver === 'memory'
      ? createMemoryLog({ clock: systemClock, partitions: 2 })
      : await openSqliteLog({ file: `${folder}/events.db`, partitions: 2 });

  it('[EVS-ID] gives ids of this product, and replays what it stored under the same ids, in order', async () => {
    using folder = makeScratchFolder();
    const log = await open(folder.path);
    const store = await openEventStore({ log, secrets: [SECRET] });
    const session = await store.create();
    const stream = randomUUID();
    const primer = await session.storeEvent(stream, {});
    const ids = [];
    for (let n = 1; n <= 5; n++) ids.push(await session.storeEvent(stream, note(n)));
    await session.storeEvent(randomUUID(), note(99));
    const parsed = [primer, ...ids].map((id) => parseEventId(id));
    expect(parsed.map((id) => id?.seq)).toEqual([0, 1, 2, 3, 4, 5]);
    const label = parsed[0]?.stream;
    expect(label?.kind).toBe('request');
    let chain = startChain(session.sessionId, label!);
    for (let n = 1; n <= 5; n++) chain = extendChain(chain, encodeText(JSON.stringify(note(n))));
    expect(parsed.at(-1)?.chain).toEqual(chain);
    expect(await replay(session, primer)).toEqual({ stream, ids, messages: [1, 2, 3, 4, 5].map(note) });
    expect(await replay(session, ids[2]!)).toEqual({ stream, ids: ids.slice(3), messages: [4, 5].map(note) });
    expect(await replay(session, ids[4]!)).toEqual({ stream, ids: [], messages: [] });
    await store.close();
    await log.close();
  });

  it('[EVS-ORDER] events of a stream that are stored at once get their numbers in the order of the calls', async () => {
    using folder = makeScratchFolder();
    const log = await open(folder.path);
    const store = await openEventStore({ log, secrets: [SECRET] });
    const session = await store.create();
    const order: number[] = [];
    const stored = await Promise.all(
      Array.from({ length: 300 }, async (_, n) => {
        const id = await session.storeEvent(STANDALONE, note(n));
        order.push(n);
        return parseEventId(id);
      }),
    );
    expect(stored.map((id) => id?.seq)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
    expect(order).toEqual(Array.from({ length: 300 }, (_, n) => n));
    const offsets = stored.map((id) => id?.offset ?? -1);
    expect([...offsets].sort((a, b) => a - b)).toEqual(offsets);
    await store.close();
    await log.close();
  });

  it('[EVS-ISOLATED] the standalone streams of two sessions never mix, and an id is good in its own session alone', async () => {
    using folder = makeScratchFolder();
    const log = await open(folder.path);
    const store = await openEventStore({ log, secrets: [SECRET] });
    const [one, other] = [await store.create(), await store.create()];
    const ids = [await one.storeEvent(STANDALONE, note(1)), await other.storeEvent(STANDALONE, note(2))];
    await one.storeEvent(STANDALONE, note(3));
    await other.storeEvent(STANDALONE, note(4));
    expect((await replay(one, ids[0]!)).messages).toEqual([note(3)]);
    expect((await replay(other, ids[1]!)).messages).toEqual([note(4)]);
    expect(await reasonOf(one, ids[1]!)).toBe('cursor-foreign');
    expect(await reasonOf(other, ids[0]!)).toBe('cursor-foreign');
    await store.close();
    await log.close();
  });
});

describe('refusals of the event store', () => {
  it('[EVS-REFUSE] an id that is none, that was changed, or that lies beyond the end is refused with its reason', async () => {
    const { open } = memoryStores();
    const store = await open();
    const session = await store.create();
    const id = await session.storeEvent(STANDALONE, note(1));
    await session.storeEvent(STANDALONE, note(2));
    expect(await reasonOf(session, 'nonsense')).toBe('cursor-malformed');
    const fields = id.split('.');
    const changed = (field: number, text: string): string => fields.with(field, text).join('.');
    expect(await reasonOf(session, changed(4, '2'))).toBe('diverged');
    expect(await reasonOf(session, changed(2, '1'))).toBe('diverged');
    expect(await reasonOf(session, changed(2, '5000'))).toBe('beyond-end');
    expect(await reasonOf(session, changed(1, '1'))).toBe('cursor-foreign');
    expect(await reasonOf(session, changed(3, 's7'))).toBe('cursor-foreign');
    expect(await reasonOf(session, changed(0, 'aaaaaaaaaa'))).toBe('epoch-mismatch');
    await store.close();
  });

  it('[EVS-ISOLATED] a forged id that names the record of another session, with its true checksum, is refused', async () => {
    const { open } = memoryStores();
    const store = await open();
    const [one, other] = [await store.create(), await store.create()];
    const own = parseEventId(await one.storeEvent(STANDALONE, note(1)))!;
    const theirs = parseEventId(await other.storeEvent(STANDALONE, note(2)))!;
    const { formatEventId } = await import('@throughline/protocol');
    const forged = formatEventId({ ...own, offset: theirs.offset, crc: theirs.crc, chain: theirs.chain });
    expect(await reasonOf(one, forged)).toBe('cursor-foreign');
    await store.close();
  });

  it('[EVS-REFUSE] what retention took is a gap, never skipped', async () => {
    const { open, memory } = memoryStores();
    const store = await open();
    const session = await store.create();
    const first = await session.storeEvent(STANDALONE, note(1));
    const second = await session.storeEvent(STANDALONE, note(2));
    const at = parseEventId(second)!.offset;
    memory.controls.evictBefore({ topic: 'events', partition: 0 }, at);
    expect(await reasonOf(session, first)).toBe('gap');
    expect((await replay(session, second)).messages).toEqual([]);
    await store.close();
  });

  it('[EVS-REFUSE] a topic that was made anew is found out at each id, though it answers with records', async () => {
    const { open, memory } = memoryStores();
    const store = await open();
    const session = await store.create();
    const id = await session.storeEvent(STANDALONE, note(1));
    memory.controls.recreate('events');
    expect(await reasonOf(session, id)).toBe('diverged');
    await session.storeEvent(STANDALONE, note(2));
    expect(await reasonOf(session, id)).toBe('diverged');
    await store.close();
  });

  it('[EVS-REFUSE] after a new epoch ids of the former one are refused, and its sessions are not found', async () => {
    const { open, log } = memoryStores();
    const store = await open();
    const session = await store.create();
    const id = await session.storeEvent(STANDALONE, note(1));
    const { Meta } = await import('@throughline/tail');
    const { systemRandom } = await import('@throughline/log');
    const meta = new Meta({ log, clock: systemClock });
    await meta.sync();
    const epoch = await meta.proposeNext(systemRandom, 'test');
    await expect.poll(() => store.create().then(({ sessionId }) => sessionId.startsWith(epoch))).toBe(true);
    expect(await reasonOf(session, id)).toBe('epoch-mismatch');
    expect(await store.find(session.sessionId)).toBeNull();
    await expect(session.storeEvent(STANDALONE, note(2))).rejects.toMatchObject({ code: 'SESSION_ENDED' });
    await meta.close();
    await store.close();
  });

  it('[EVS-END] after the end of a session nothing is stored, resumed or found, in any process', async () => {
    const { open } = memoryStores();
    const [here, there] = [await open(), await open()];
    const session = await here.create();
    await session.remember(INITIALIZE);
    const id = await session.storeEvent(STANDALONE, note(1));
    const elsewhere = (await there.find(session.sessionId))!;
    await session.end();
    await session.end();
    expect(await reasonOf(session, id)).toBe('session-ended');
    await expect(session.storeEvent(STANDALONE, note(2))).rejects.toMatchObject({ code: 'SESSION_ENDED' });
    expect(await there.find(session.sessionId)).toBeNull();
    expect(await reasonOf(elsewhere, id)).toBe('session-ended');
    await here.close();
    await there.close();
  });

  it('[EVS-REFUSE] a refusal carries what gateways answer: reason, action, status', async () => {
    const { open } = memoryStores();
    const store = await open();
    const session = await store.create();
    const malformed = await session.judge('nonsense');
    expect(malformed?.httpStatus).toBe(400);
    expect(malformed?.body.error?.data).toMatchObject({
      type: 'ResumptionRejected',
      reason: 'cursor-malformed',
      action: 'correct-cursor',
    });
    const id = await session.storeEvent(STANDALONE, note(1));
    const beyond = await session.judge(id.split('.').with(2, '77').join('.'));
    expect(beyond?.httpStatus).toBe(404);
    expect(beyond?.body.error?.data).toMatchObject({ reason: 'beyond-end', action: 'reinitialize' });
    expect(await session.judge(id)).toBeNull();
    await store.close();
  });
});

describe('sessions of the event store', () => {
  it('[EVS-SESSION] a session is found by the id that was made here for its principal and server, in its time', async () => {
    const { open } = memoryStores();
    const store = await open({ server: 'shop', maxLifeMs: 60_000 });
    const session = await store.create('ann');
    expect(await store.find(session.sessionId, 'ann')).toBe(session);
    expect(await store.find(session.sessionId, 'bob')).toBeNull();
    expect(await store.find('nonsense', 'ann')).toBeNull();
    expect(await store.find(randomUUID(), 'ann')).toBeNull();
    const other = await open({ secrets: [new Uint8Array(32).fill(9)], server: 'shop' });
    expect(await other.find(session.sessionId, 'ann')).toBeNull();
    const [epoch = ''] = session.sessionId.split('.');
    const old = { epoch, partition: 0, from: 0, createdMs: Date.now() - 61_000, key: session.sessionId.split('.')[4]! };
    expect(await store.find(signSessionId(old, { principal: 'ann', server: 'shop' }, SECRET), 'ann')).toBeNull();
    await store.close();
    await other.close();
  });

  it('[EVS-SESSION] a log that workers use is refused, and so are secrets that are too short', async () => {
    const { log, open } = memoryStores();
    const first = await open();
    const session = await first.create();
    await first.close();
    await expect(openEventStore({ log, secrets: [] })).rejects.toThrow(TypeError);
    await expect(openEventStore({ log, secrets: [new Uint8Array(31)] })).rejects.toThrow(/32 bytes/u);
    await expect(openEventStore({ log, secrets: [SECRET], maxLifeMs: 0 })).rejects.toThrow(/maxLifeMs/u);
    await expect(openEventStore({ log, secrets: [SECRET], limits: { maxStreams: 0 } })).rejects.toThrow(/maxStreams/u);
    const [epoch = ''] = session.sessionId.split('.');
    const hint = JSON.stringify({ offset: 0, claims: [0], worker: 'w' });
    await log.append({ topic: 'meta', partition: 0 }, [
      { key: encodeText(`checkpoint/${epoch}/0`), value: encodeText(hint), headers: [] },
    ]);
    await expect(open()).rejects.toSatisfy((error) => hasEventStoreCode(error, 'SHARED_LOG'));
  });

  it('[EVS-RESTORE] another process goes on with the numbers and the chain of a stream, whether a client resumes or not', async () => {
    const { open } = memoryStores();
    const [former, next, third] = [await open(), await open(), await open()];
    const session = await former.create();
    const first = await session.storeEvent(STANDALONE, note(1));
    await session.storeEvent(STANDALONE, note(2));
    const unasked = (await next.find(session.sessionId))!;
    const id = await unasked.storeEvent(STANDALONE, note(3));
    expect(parseEventId(id)?.seq).toBe(3);
    const asked = (await third.find(session.sessionId))!;
    expect((await replay(asked, first)).messages).toEqual([note(2), note(3)]);
    expect(parseEventId(await asked.storeEvent(STANDALONE, note(4)))?.seq).toBe(4);
    expect((await replay(asked, first)).messages).toEqual([note(2), note(3), note(4)]);
    for (const store of [former, next, third]) await store.close();
  });

  it('[EVS-RESTORE] a stream whose beginning retention took goes on where what is held says', async () => {
    const { open, memory } = memoryStores();
    const [former, next] = [await open(), await open()];
    const session = await former.create();
    await session.storeEvent(STANDALONE, note(1));
    const held = await session.storeEvent(STANDALONE, note(2));
    memory.controls.evictBefore({ topic: 'events', partition: 0 }, parseEventId(held)!.offset);
    const restored = (await next.find(session.sessionId))!;
    expect(parseEventId(await restored.storeEvent(STANDALONE, note(3)))?.seq).toBe(3);
    expect((await replay(restored, held)).messages).toEqual([note(3)]);
    for (const store of [former, next]) await store.close();
  });

  it('[EVS-FORK] of two processes that write one stream at once one history counts, and an id of the other is refused by it', async () => {
    const { open } = memoryStores();
    const [former, next] = [await open(), await open()];
    const session = await former.create();
    const common = await session.storeEvent(STANDALONE, note(1));
    const restored = (await next.find(session.sessionId))!;
    expect((await replay(restored, common)).messages).toEqual([]);
    const kept = await restored.storeEvent(STANDALONE, note(2));
    // It does not know that the stream went on elsewhere.
    const stray = await session.storeEvent(STANDALONE, note(3));
    expect((await replay(restored, common)).messages).toEqual([note(2)]);
    expect(await replay(restored, kept)).toMatchObject({ messages: [] });
    const refused = await replay(restored, stray).catch((error: unknown) => error);
    expect(refused).toMatchObject({ reason: 'diverged' });
    // Nor does the stray one take over a client of the other.
    expect(await replay(session, kept).catch((error: unknown) => error)).toMatchObject({ reason: 'diverged' });
    for (const store of [former, next]) await store.close();
  });
});

describe('appends that fail', () => {
  it.each(['unknown-stored', 'unknown-lost'] as const)(
    '[EVS-UNKNOWN] after an append that ended %s the ids go on as the log says',
    async (fault) => {
      const { open, memory } = memoryStores();
      const store = await open();
      const session = await store.create();
      const first = await session.storeEvent(STANDALONE, note(1));
      memory.controls.failAppends(fault);
      await expect(session.storeEvent(STANDALONE, note(2))).rejects.toMatchObject({ code: 'APPEND_UNKNOWN' });
      memory.controls.failAppends(null);
      const next = await session.storeEvent(STANDALONE, note(3));
      const isThere = fault === 'unknown-stored';
      expect(parseEventId(next)?.seq).toBe(isThere ? 3 : 2);
      const { messages, ids } = await replay(session, first);
      expect(messages).toEqual(isThere ? [note(2), note(3)] : [note(3)]);
      expect(ids.at(-1)).toBe(next);
      await store.close();
    },
  );

  it('[EVS-UNKNOWN] an append that comes into the log late, between the look and the next one, is followed', async () => {
    const { open, log } = memoryStores();
    // The append that is late: kept back, and put in just before the next one.
    let late: (() => Promise<unknown>) | null = null;
    let mode: 'pass' | 'keep' | 'release' = 'pass';
    const { LogError } = await import('@throughline/log');
    const sly = {
      ...log,
      get description() {
        return log.description;
      },
      append: async (...args: Parameters<typeof log.append>) => {
        if (args[0].topic !== 'events' || mode === 'pass') return await log.append(...args);
        if (mode === 'keep') {
          late = () => log.append(...args);
          throw new LogError('APPEND_UNKNOWN', 'no ack');
        }
        mode = 'pass';
        await late?.();
        return await log.append(...args);
      },
    };
    const store = await open({ log: sly });
    const session = await store.create();
    const first = await session.storeEvent(STANDALONE, note(1));
    mode = 'keep';
    await expect(session.storeEvent(STANDALONE, note(2))).rejects.toMatchObject({ code: 'APPEND_UNKNOWN' });
    mode = 'release';
    const next = await session.storeEvent(STANDALONE, note(3));
    expect(parseEventId(next)?.seq).toBe(3);
    expect((await replay(session, first)).messages).toEqual([note(2), note(3)]);
    await store.close();
  });

  it('[EVS-UNKNOWN] a refused append leaves no hole', async () => {
    const { open, memory } = memoryStores();
    const store = await open();
    const session = await store.create();
    const first = await session.storeEvent(STANDALONE, note(1));
    memory.controls.failAppends('refused');
    await expect(session.storeEvent(STANDALONE, note(2))).rejects.toMatchObject({ code: 'APPEND_REFUSED' });
    memory.controls.failAppends(null);
    expect(parseEventId(await session.storeEvent(STANDALONE, note(3)))?.seq).toBe(2);
    expect((await replay(session, first)).messages).toEqual([note(3)]);
    await store.close();
  });
});

describe('bounds of the event store', () => {
  it('[EVS-BOUND] what waits for the log is bounded, and so are messages, sessions, and one replay', async () => {
    const { open } = memoryStores({ maxRecordBytes: 4096 });
    const store = await open({ limits: { maxWaitingChars: 200, maxSessions: 2, maxReplayEvents: 3 } });
    const session = await store.create();
    const text = 'x'.repeat(80);
    const waiting = [1, 2, 3].map((n) => session.storeEvent(STANDALONE, { ...note(n), text }));
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(outcomes[1]).toMatchObject({ reason: { code: 'TOO_MUCH_WAITING' } });
    await expect(session.storeEvent(STANDALONE, { text: 'y'.repeat(4096) })).rejects.toMatchObject({
      code: 'TOO_LARGE',
    });
    const first = await session.storeEvent(STANDALONE, note(1));
    for (let n = 2; n <= 4; n++) await session.storeEvent(STANDALONE, note(n));
    expect((await replay(session, first)).messages).toHaveLength(3);
    await session.storeEvent(STANDALONE, note(5));
    const sent: unknown[] = [];
    const tooMuch = session.replayEventsAfter(first, { send: async (id: string) => void sent.push(id) });
    await expect(tooMuch).rejects.toMatchObject({ code: 'REPLAY_TOO_LARGE' });
    expect(sent).toEqual([]);
    const second = await store.create();
    await expect(store.create()).rejects.toMatchObject({ code: 'TOO_MANY_SESSIONS' });
    second.release();
    await store.create();
    await store.close();
  });

  it('[EVS-BOUND] a stream whose place was forgotten is found again in the log', async () => {
    const { open } = memoryStores();
    const store = await open({ limits: { maxStreams: 2 } });
    const session = await store.create();
    const streams = Array.from({ length: 6 }, () => randomUUID());
    const first = await session.storeEvent(STANDALONE, note(1));
    for (const stream of streams) await session.storeEvent(stream, note(7));
    expect(parseEventId(await session.storeEvent(STANDALONE, note(2)))?.seq).toBe(2);
    expect(parseEventId(await session.storeEvent(streams[0]!, note(8)))?.seq).toBe(2);
    expect((await replay(session, first)).messages).toEqual([note(2)]);
    await store.close();
  });

  it('[EVS-DEADLINE] a log that does not answer ends a resume and an event with an error in time', async () => {
    const { open, log } = memoryStores();
    let isSilent = false;
    const never = new Promise<never>(() => undefined);
    const silent = {
      ...log,
      get description() {
        return log.description;
      },
      read: (...args: Parameters<typeof log.read>) =>
        isSilent && args[0].topic === 'events' ? never : log.read(...args),
    };
    const store = await open({ log: silent, limits: { replayMs: 50 } });
    const session = await store.create();
    const id = await session.storeEvent(STANDALONE, note(1));
    isSilent = true;
    await expect(replay(session, id)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    isSilent = false;
    expect((await replay(session, id)).messages).toEqual([]);
    await store.close();
  });
});

describe('the interface of the SDKs', () => {
  it('[EVS-ID] a session is an EventStore of both lines', async () => {
    const { open } = memoryStores();
    const store = await open();
    const session = await store.create();
    const stores: readonly (EventStoreV1 | EventStoreV2)[] = [
      session satisfies EventStoreV1,
      session satisfies EventStoreV2,
    ];
    expect(stores.map(({ getStreamIdForEventId }) => getStreamIdForEventId)).toEqual([undefined, undefined]);
    await store.close();
  });
});
