import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LogError } from '@throughline/log';
import { requestStream } from '@throughline/protocol';
import { claimed, sent } from '@throughline/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { CatchUpPool } from './catch-up-pool.ts';
import type { PartitionTail, PartitionTailOptions } from './partition-tail.ts';
import { createRig, EPOCH, EVENTS, hintAt, offsetsOf, OPEN, spyReads } from './testing/log-rig.ts';
import type { ReadCall, Rig } from './testing/log-rig.ts';

const message = (key = 'k', owner: number | null = null, bytes = 2) =>
  sent(key, requestStream(1), 'x'.repeat(bytes), { owner });
const many = (count: number, key = 'k') => Array.from({ length: count }, () => message(key));
const tails: PartitionTail[] = [];

/** A tail that has read all there is. */
async function open(rig: Rig, options: Partial<PartitionTailOptions> = {}): Promise<PartitionTail> {
  const tail = rig.tail(options);
  tails.push(tail);
  await rig.time.settle();
  return tail;
}

afterEach(async () => {
  await Promise.all(tails.splice(0).map((tail) => tail.stop()));
});

describe('cursor in the cache', () => {
  it('[TAIL-CACHE] what the cache holds costs no read of the log', async () => {
    const rig = createRig();
    await rig.append(message(), message('other'), message());
    const calls: ReadCall[] = [];
    const tail = await open(rig, { log: spyReads(rig.log, calls) });
    calls.length = 0;
    const cursor = tail.cursor('k', 0);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([0, 2]);
    expect(await rig.finish(tail.cursor('k', 1).readAnchor(OPEN))).toMatchObject({
      kind: 'record',
      record: { offset: 1 },
    });
    expect(calls).toEqual([]);
  });

  it('[TAIL-ORDER] a burst is returned in parts, each event once', async () => {
    const rig = createRig();
    await rig.append(...many(600));
    const tail = await open(rig);
    const cursor = tail.cursor('k', 0);
    const got: number[] = [];
    const sizes: number[] = [];
    for (;;) {
      const result = await rig.finish(cursor.next(OPEN, 0));
      if (result.kind !== 'events') break;
      sizes.push(result.events.length);
      got.push(...result.events.map(({ event }) => event.offset));
    }
    expect(got).toEqual(Array.from({ length: 600 }, (_, offset) => offset));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256);
  });

  it('[TAIL-WAKE] a waiting cursor wakes for its own session alone', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const cursor = tail.cursor('k', 0);
    let result: unknown = null;
    void cursor.next(OPEN, 60_000).then((next) => {
      result = offsetsOf(next);
    });
    await rig.append(message('other'));
    await rig.time.advance(10);
    expect(result).toBeNull();
    expect(cursor.position()).toBe(1);
    await rig.append(message());
    await rig.time.advance(0);
    expect(result).toEqual([1]);
    expect(cursor.position()).toBe(2);
  });

  it('[TAIL-WAKE] a cursor ahead of the tail waits for its place and returns nothing from before it', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const cursor = tail.cursor('k', 2);
    let result: unknown = null;
    void cursor.next(OPEN, 60_000).then((next) => {
      result = offsetsOf(next);
    });
    await rig.append(message());
    await rig.time.advance(0);
    await rig.append(message());
    await rig.time.advance(0);
    expect(result).toBeNull();
    await rig.append(message());
    await rig.time.advance(0);
    expect(result).toEqual([2]);
  });

  it('[TAIL-IDLE] with nothing to return it is idle after the time asked, behind all it has passed', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const cursor = tail.cursor('k', 0);
    const waiting = cursor.next(OPEN, 500);
    await rig.append(...many(3, 'other'));
    const before = rig.time.nowMs();
    expect(await rig.finish(waiting)).toEqual({ kind: 'idle' });
    expect(rig.time.nowMs() - before).toBe(500);
    expect(cursor.position()).toBe(3);
    expect(cursor.passed()?.offset).toBe(2);
    expect(rig.time.pending()).toBe(1);
  });

  it('[TAIL-IDLE] being woken for nothing does not make it wait longer', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const waiting = tail.cursor('k', 5).next(OPEN, 500);
    await rig.time.advance(300);
    await rig.append(message());
    expect(await rig.finish(waiting)).toEqual({ kind: 'idle' });
    expect(rig.time.nowMs()).toBe(500);
  });

  it('[TAIL-STOP] a cursor that waited and was left leaves nothing behind, neither in the tail nor on its signal', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const rig = createRig();
    const tail = await open(rig);
    const { signal } = new AbortController();
    const left = await (async (): Promise<WeakRef<object>> => {
      const cursor = tail.cursor('k', 0);
      for (let round = 0; round < 3; round++)
        expect(await rig.finish(cursor.next(signal, 10))).toEqual({ kind: 'idle' });
      return new WeakRef(cursor);
    })();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    // What was cancelled stays in the virtual clock until its time.
    await rig.time.advance(100);
    gc();
    expect(left.deref()).toBeUndefined();
  });

  it('[TAIL-STOP] an aborted or stopped cursor says so at once and leaves no timer', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const abort = new AbortController();
    const [one, two] = [tail.cursor('k', 0), tail.cursor('k', 0)];
    const [first, second] = [one.next(abort.signal, 60_000), two.next(OPEN, 60_000)];
    abort.abort();
    expect(await rig.finish(first)).toEqual({ kind: 'stopped' });
    await tail.stop();
    expect(await rig.finish(second)).toEqual({ kind: 'stopped' });
    expect(await two.next(OPEN, 60_000)).toEqual({ kind: 'stopped' });
    expect(await two.readAnchor(OPEN)).toEqual({ kind: 'stopped' });
    expect(rig.time.pending()).toBe(0);
    await tail.stop();
  });
});

describe('place that a cursor may name', () => {
  it('[TAIL-PASSED] it is never ahead of what was returned: a paused socket does not skip what waits for it', async () => {
    const rig = createRig();
    await rig.append(message('other'));
    const tail = await open(rig);
    const cursor = tail.cursor('k', 1);
    expect(await rig.finish(cursor.next(OPEN, 10))).toEqual({ kind: 'idle' });
    expect(cursor.passed()?.offset).toBe(0);
    // The connection does not ask: an event of its own comes, then others.
    await rig.append(message(), message('other'), message('other'));
    await rig.time.settle();
    expect(tail.last()?.offset).toBe(3);
    expect(cursor.passed()?.offset).toBe(0);
    expect(cursor.position()).toBe(1);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([1]);
    expect(cursor.passed()?.offset).toBe(1);
    expect(await rig.finish(cursor.next(OPEN, 0))).toEqual({ kind: 'idle' });
    expect(cursor.passed()?.offset).toBe(3);
  });

  it('[TAIL-PASSED] while it waits it moves with the tail, and stops where an event of its own lies', async () => {
    const rig = createRig();
    const tail = await open(rig);
    const cursor = tail.cursor('k', 0);
    const waiting = cursor.next(OPEN, 60_000);
    expect(cursor.passed()).toBeNull();
    await rig.append(message('other'), message('other'));
    await rig.time.settle();
    expect(cursor.passed()?.offset).toBe(1);
    await rig.append(message('other'), message(), message('other'));
    await rig.time.settle();
    expect(offsetsOf(await waiting)).toEqual([3]);
    expect(cursor.passed()?.offset).toBe(3);
  });

  it('[TAIL-PASSED] in catch-up it is the last record read, of whatever session', async () => {
    const rig = createRig();
    await rig.append(message(), message('other'), message('third'), ...many(5, 'other'));
    const tail = await open(rig, { cacheBytes: 400 });
    const cursor = tail.cursor('k', 0);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([0]);
    expect(cursor.passed()?.offset).toBe(cursor.position() - 1);
    expect(cursor.passed()?.offset).toBeGreaterThanOrEqual(0);
    expect(await rig.finish(cursor.next(OPEN, 10))).toEqual({ kind: 'idle' });
    expect(cursor.passed()?.offset).toBe(7);
  });
});

describe('catch-up', () => {
  it('[TAIL-ORDER] from every start, with every cache, a cursor crosses from the log into the cache with no hole and no repeat', async () => {
    for (const cacheBytes of [1, 700, 1500, 100_000]) {
      for (let from = 0; from <= 13; from++) {
        const rig = createRig();
        await rig.append(...Array.from({ length: 12 }, (_, index) => message(index % 3 === 1 ? 'other' : 'k')));
        const tail = rig.tail({ cacheBytes });
        await rig.time.settle();
        const cursor = tail.cursor('k', from);
        const got: number[] = [];
        for (let round = 0; round < 3; round++) {
          for (;;) {
            const result = await rig.finish(cursor.next(OPEN, 0));
            if (result.kind !== 'events') break;
            got.push(...result.events.map(({ event }) => event.offset));
          }
          await rig.append(message(), message('other'), message());
          await rig.time.settle();
        }
        const all = Array.from({ length: 18 }, (_, offset) => offset).filter(
          (offset) => offset >= from && (offset < 12 ? offset % 3 !== 1 : (offset - 12) % 3 !== 1),
        );
        expect(got, `cache ${cacheBytes}, from ${from}`).toEqual(all);
        await tail.stop();
      }
    }
  });

  it('[TAIL-HINT] what lies before the checkpoint a tail began at is read from the log', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message('k', 0), message('k', 0), message('k', 0));
    const calls: ReadCall[] = [];
    const tail = await open(rig, { log: spyReads(rig.log, calls), hint: () => hintAt(2, [0], 'a') });
    expect(calls[0]?.position).toBe(2);
    const cursor = tail.cursor('k', 1);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([1, 2, 3]);
    expect(calls.map(({ position }) => position)).toContain(1);
  });

  it('[TAIL-JUDGE] older records are judged by the claim in force at their place', async () => {
    const rig = createRig();
    await rig.append(
      claimed('a', EPOCH, null),
      message('k', 0),
      claimed('b', EPOCH, 0),
      message('k', 0),
      message('k', 2),
      claimed('c', EPOCH, 0),
      message('k', 5),
      message('k'),
    );
    const truth = [1, 4, 7];
    const cached = await open(rig);
    expect(offsetsOf(await rig.finish(cached.cursor('k', 0).next(OPEN, 0)))).toEqual(truth);
    const evicted = await open(rig, { cacheBytes: 1 });
    const got: number[] = [];
    const cursor = evicted.cursor('k', 0);
    for (let result = await rig.finish(cursor.next(OPEN, 0)); result.kind === 'events';) {
      got.push(...result.events.map(({ event }) => event.offset));
      result = await rig.finish(cursor.next(OPEN, 0));
    }
    expect(got).toEqual(truth);
  });

  it('[TAIL-JUDGE] what the tail has not read yet is not returned, since no verdict is known', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message('k', 0), message('k', 0));
    const calls: ReadCall[] = [];
    let hold = Promise.resolve();
    const log = spyReads(rig.log, calls, ({ waitMs }) => (waitMs > 1000 ? hold : undefined));
    const tail = await open(rig, { log, cacheBytes: 1 });
    // The tail itself is held up; a new owner comes, and the old one writes on.
    let go = (): void => undefined;
    hold = new Promise((resolve) => {
      go = resolve;
    });
    await rig.append(message('k', 0));
    await rig.time.settle();
    await rig.append(claimed('b', EPOCH, 0), message('k', 0), message('k', 4));
    const cursor = tail.cursor('k', 0);
    expect(tail.position()).toBe(4);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([1, 2, 3]);
    expect(cursor.position()).toBe(4);
    expect(await rig.finish(cursor.next(OPEN, 50))).toEqual({ kind: 'idle' });
    go();
    await rig.time.settle();
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([6]);
  });

  it('[TAIL-GAP] retention that passes a slow cursor is told with what is held', async () => {
    const rig = createRig();
    await rig.append(...many(10));
    const tail = await open(rig, { cacheBytes: 1 });
    const cursor = tail.cursor('k', 2);
    rig.log.controls.evictBefore(EVENTS, 6);
    expect(await rig.finish(cursor.next(OPEN, 0))).toEqual({ kind: 'gap', start: 6, end: 10 });
    expect(await rig.finish(tail.cursor('k', 2).readAnchor(OPEN))).toEqual({ kind: 'gap', start: 6, end: 10 });
    expect(offsetsOf(await rig.finish(tail.cursor('k', 6).next(OPEN, 0)))).toEqual([6, 7, 8, 9]);
  });

  it('[TAIL-GAP] what was read before it was evicted is a gap too once the claim that it needs is forgotten', async () => {
    const rig = createRig();
    await rig.append(
      claimed('a', EPOCH, null),
      message('k', 0),
      message('k', 0),
      claimed('b', EPOCH, 0),
      message('k', 3),
    );
    const tail = await open(rig, { cacheBytes: 1 });
    const cursor = tail.cursor('k', 1);
    expect(await rig.finish(cursor.readAnchor(OPEN))).toMatchObject({ record: { offset: 1 } });
    rig.log.controls.evictBefore(EVENTS, 4);
    await rig.append(message('k', 3));
    await rig.time.settle();
    expect(tail.claims().list()).toEqual([3]);
    cursor.skipTo(2);
    expect(await rig.finish(cursor.next(OPEN, 0))).toEqual({ kind: 'gap', start: 4, end: 6 });
  });

  it('[TAIL-GAP] a tail that retention passed begins anew, and its cursors learn of it', async () => {
    const rig = createRig();
    await rig.append(...many(3));
    const calls: ReadCall[] = [];
    let hold = Promise.resolve();
    const tail = await open(rig, { log: spyReads(rig.log, calls, ({ waitMs }) => (waitMs > 1000 ? hold : undefined)) });
    let go = (): void => undefined;
    hold = new Promise((resolve) => {
      go = resolve;
    });
    await rig.append(message('other'));
    await rig.time.settle();
    const cursor = tail.cursor('k', 3);
    const waiting = cursor.next(OPEN, 60_000);
    await rig.append(...many(5));
    rig.log.controls.evictBefore(EVENTS, 7);
    go();
    expect(await rig.finish(waiting)).toMatchObject({ kind: 'gap', start: 7 });
    expect(offsetsOf(await rig.finish(tail.cursor('k', 7).next(OPEN, 0)))).toEqual([7, 8]);
    expect(tail.position()).toBe(9);
  });

  it('[TAIL-SLOW] a cursor that the cache has left behind is told of once, and goes on from the log', async () => {
    const rig = createRig();
    let slow = 0;
    const tail = await open(rig, {
      cacheBytes: 1500,
      onSlowReader: () => {
        slow++;
      },
    });
    const cursor = tail.cursor('k', 0);
    await rig.append(message());
    await rig.time.settle();
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([0]);
    await rig.append(...Array.from({ length: 20 }, () => message('k', null, 60 * 1024)));
    await rig.time.settle();
    const got: number[] = [];
    for (let result = await rig.finish(cursor.next(OPEN, 0)); result.kind === 'events';) {
      got.push(...result.events.map(({ event }) => event.offset));
      result = await rig.finish(cursor.next(OPEN, 0));
    }
    expect(got).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    expect(slow).toBe(1);
    // One that began with old events is none.
    await rig.finish(tail.cursor('k', 0).next(OPEN, 0));
    expect(slow).toBe(1);
  });

  it('[TAIL-IDLE] a long way through records of others does not take longer than the time asked', async () => {
    const rig = createRig();
    await rig.append(
      ...Array.from({ length: 30 }, () => message('other', null, 200 * 1024)),
      message(),
      message('other'),
    );
    const calls: ReadCall[] = [];
    const log = spyReads(rig.log, calls, async ({ waitMs }) => {
      if (waitMs < 1000) await new Promise<void>((resolve) => void rig.clock.setTimer(100, resolve));
    });
    const tail = await open(rig, { log, cacheBytes: 1 });
    const cursor = tail.cursor('k', 0);
    expect(await rig.finish(cursor.next(OPEN, 300))).toEqual({ kind: 'idle' });
    expect(rig.time.nowMs()).toBe(300);
    expect(cursor.passed()?.offset).toBe(cursor.position() - 1);
    expect(cursor.position()).toBeGreaterThan(2);
    // With no time it looks through all there is.
    expect(offsetsOf(await rig.finish(tail.cursor('k', 0).next(OPEN, 0)))).toEqual([30]);
  });

  it('[TAIL-RETRY] a catch-up read that fails is told and tried again', async () => {
    const rig = createRig();
    await rig.append(...many(3));
    const calls: ReadCall[] = [];
    const errors: unknown[] = [];
    let failures = 2;
    const log = spyReads(rig.log, calls, ({ waitMs }) => {
      if (waitMs < 1000 && failures-- > 0) throw new LogError('LOG_UNAVAILABLE', 'not now');
    });
    const tail = await open(rig, { log, cacheBytes: 1, onError: (error) => void errors.push(error) });
    const result = await rig.finish(tail.cursor('k', 0).next(OPEN, 5000));
    expect(offsetsOf(result)).toEqual([0, 1, 2]);
    expect([errors.length, rig.time.nowMs()]).toEqual([2, 200]);
  });

  it('[TAIL-POOL] catch-up reads of all cursors keep to the bound, and one that leaves while it waits is stopped', async () => {
    const rig = createRig();
    await rig.append(...many(3));
    let running = 0;
    let most = 0;
    const log = {
      ...rig.log,
      async read(...args: Parameters<typeof rig.log.read>) {
        if ((args[2]?.waitMs ?? 0) > 1000) return rig.log.read(...args);
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => void rig.clock.setTimer(50, resolve));
        running--;
        return rig.log.read(...args);
      },
    };
    const pool = new CatchUpPool(2);
    const tails = [];
    for (let index = 0; index < 7; index++) tails.push(await open(rig, { log, cacheBytes: 1, pool }));
    const abort = new AbortController();
    const results = tails.map((tail, index) => tail.cursor('k', 0).next(index === 6 ? abort.signal : OPEN, 1000));
    abort.abort();
    const done = await rig.finish(Promise.all(results));
    expect(done.map(offsetsOf)).toEqual([...Array.from({ length: 6 }, () => [0, 1, 2]), 'stopped']);
    expect(most).toBe(2);
  });
});

describe('what catch-up brought', () => {
  it('[TAIL-CHUNKS] many cursors that come back to places near each other cost one read', async () => {
    const rig = createRig();
    await rig.append(...many(40), ...many(3, 'other'), message('k', null, 60_000));
    const calls: ReadCall[] = [];
    const tail = await open(rig, { log: spyReads(rig.log, calls), cacheBytes: 100_000 });
    calls.length = 0;
    const results = await rig.finish(
      Promise.all([0, 7, 20, 39].map((from) => tail.cursor(from === 39 ? 'other' : 'k', from).next(OPEN, 0))),
    );
    const upTo43 = (from: number) => Array.from({ length: 40 - from }, (_, index) => from + index);
    expect(results.map((result) => offsetsOf(result))).toEqual([
      [...upTo43(0), 43],
      [...upTo43(7), 43],
      [...upTo43(20), 43],
      [40, 41, 42],
    ]);
    expect(calls).toHaveLength(1);
  });

  it('[TAIL-ROUNDS] all who come back at once, in any order, cost about one read of what they missed together', async () => {
    const rig = createRig();
    const keys = Array.from({ length: 300 }, (_, index) => `k${index}`);
    // Each misses three messages that lie a third of the way from each other: none finds all of them in one read.
    for (let third = 0; third < 3; third++) {
      await rig.append(...keys.map((key) => message(key, null, 2000)));
      await rig.append(message('other', null, 100_000));
    }
    const calls: ReadCall[] = [];
    let bytes = 0;
    const log = spyReads(rig.log, calls);
    const counting = {
      ...log,
      async read(...args: Parameters<typeof log.read>) {
        const batch = await log.read(...args);
        bytes += batch.records.reduce((sum, record) => sum + (record.value?.length ?? 0), 0);
        return batch;
      },
    };
    const tail = await open(rig, { log: counting, cacheBytes: 1 });
    const held = bytes;
    bytes = 0;
    const shuffled = keys.map((key, index) => ({ key, index, at: (index * 7919) % 300 })).sort((a, b) => a.at - b.at);
    const seen = await rig.finish(
      Promise.all(
        shuffled.map(async ({ key, index }) => {
          const cursor = tail.cursor(key, index);
          const offsets: number[] = [];
          while (offsets.length < 3) {
            const result = await cursor.next(OPEN, 1000);
            if (result.kind !== 'events') throw new Error(result.kind);
            offsets.push(...result.events.map(({ event }) => event.offset));
          }
          return { index, offsets };
        }),
      ),
    );
    for (const { index, offsets } of seen) expect(offsets).toEqual([index, 301 + index, 602 + index]);
    expect(bytes).toBeLessThan(2 * held);
  });
});

describe('anchor', () => {
  it('[TAIL-ANCHOR] one read serves an anchor in the log and what follows it', async () => {
    const rig = createRig();
    await rig.append(...many(5));
    const calls: ReadCall[] = [];
    const tail = await open(rig, { log: spyReads(rig.log, calls), cacheBytes: 1 });
    calls.length = 0;
    const cursor = tail.cursor('k', 1);
    expect(await rig.finish(cursor.readAnchor(OPEN))).toMatchObject({ kind: 'record', record: { offset: 1 } });
    expect(cursor.position()).toBe(1);
    cursor.skipTo(2);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([2, 3, 4]);
    expect(calls.map(({ position }) => position)).toEqual([1]);
  });

  it('[TAIL-ANCHOR] a cursor that is moved elsewhere goes on there', async () => {
    const rig = createRig();
    await rig.append(...many(5));
    const tail = await open(rig, { cacheBytes: 1 });
    const cursor = tail.cursor('k', 1);
    await rig.finish(cursor.readAnchor(OPEN));
    cursor.skipTo(3);
    expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([3, 4]);
  });

  it('[TAIL-ANCHOR] the anchor may belong to any session, and reading it again gives it again', async () => {
    for (const cacheBytes of [1, 100_000]) {
      const rig = createRig();
      await rig.append(message(), message('other'), message(), message('other'));
      const tail = await open(rig, { cacheBytes });
      const cursor = tail.cursor('k', 1);
      for (let round = 0; round < 2; round++)
        expect(await rig.finish(cursor.readAnchor(OPEN))).toMatchObject({ kind: 'record', record: { offset: 1 } });
      cursor.skipTo(2);
      expect(offsetsOf(await rig.finish(cursor.next(OPEN, 0)))).toEqual([2]);
    }
  });

  it('[TAIL-ANCHOR] nothing at the place yet is told as such, until something is there', async () => {
    const rig = createRig();
    await rig.append(message());
    const tail = await open(rig);
    const cursor = tail.cursor('k', 1);
    expect(await rig.finish(cursor.readAnchor(OPEN))).toEqual({ kind: 'nothing-yet' });
    await rig.append(message());
    await rig.time.settle();
    expect(await rig.finish(cursor.readAnchor(OPEN))).toMatchObject({ kind: 'record', record: { offset: 1 } });
  });

  it('[TAIL-ANCHOR] where the place is a hole, the first record behind it is returned', async () => {
    const rig = createRig();
    await rig.append(...many(6));
    // Offsets 2 and 3 are given to no record, as transaction markers do it.
    const holes = {
      ...rig.log,
      async read(...args: Parameters<typeof rig.log.read>) {
        const batch = await rig.log.read(...args);
        const isAtHole = args[1] >= 2 && args[1] < 4;
        return {
          ...batch,
          records: isAtHole ? [] : batch.records.filter(({ offset }) => offset !== 2 && offset !== 3),
          next: isAtHole ? 4 : batch.next,
        };
      },
    };
    for (const cacheBytes of [1, 100_000]) {
      const tail = await open(rig, { log: holes, cacheBytes });
      const cursor = tail.cursor('k', 2);
      expect(await rig.finish(cursor.readAnchor(OPEN))).toMatchObject({ kind: 'record', record: { offset: 4 } });
    }
  });

  it('[TAIL-DOUBT] nothing is read from a log that ends before what was read; what is in the cache is the history as it was', async () => {
    const rig = createRig();
    const doubts: number[] = [];
    const ends: number[] = [];
    const guard = {
      noteRead: (_epoch: string, _of: unknown, _last: unknown, end: number) => void ends.push(end),
      suspect: (_epoch: string, _of: unknown, position: number) => void doubts.push(position),
    };
    const message = () => sent('k', requestStream(1), '{"text":"long enough to fill the cache"}', { owner: null });
    await rig.append(...Array.from({ length: 10 }, message));
    const tail = rig.tail({ cacheBytes: 300, guard });
    await rig.time.settle();
    expect(ends).toEqual([10]);
    rig.log.controls.truncate(EVENTS, 5);
    await rig.append(message());
    const old = tail.cursor('k', 0);
    const reading = old.next(OPEN, 2000);
    await rig.time.advance(1500);
    expect(doubts.every((position) => position === 10)).toBe(true);
    expect(doubts.length).toBeGreaterThan(0);
    expect(tail.isInDoubt()).toBe(true);
    await rig.time.advance(3000);
    expect(offsetsOf(await rig.finish(reading))).toBe('idle');
    const cached = tail.cursor('k', 9);
    expect(offsetsOf(await rig.finish(cached.next(OPEN, 0)))).toEqual([9]);
    await rig.finish(tail.stop());
  });
});
