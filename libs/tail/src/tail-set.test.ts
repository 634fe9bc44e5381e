import type { Log } from '@throughline/log';
import { LogError } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { makeRecord, META_KEY, requestStream } from '@throughline/protocol';
import { claimed, createVirtualTime, sent } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { Meta } from './meta.ts';
import { TailSet } from './tail-set.ts';
import { EPOCH, EVENTS, offsetsOf, OPEN } from './testing/log-rig.ts';

function createWorld(change: (log: Log) => Log = (log) => log) {
  const time = createVirtualTime({ seed: 1 });
  const clock = time.clock();
  const memory = createMemoryLog({ clock, partitions: 4, clusterId: 'here' });
  const log = change(memory);
  const meta = new Meta({ log: memory, clock });
  const set = new TailSet({ log, clock, meta, epoch: EPOCH, cacheBytes: 4000, catchUpReaders: 2 });
  const append = (...owners: (number | null)[]) =>
    memory.append(
      EVENTS,
      owners.map((owner) => sent('k', requestStream(1), '{}', { owner })),
    );
  const close = () => time.run(Promise.all([set.stop(), meta.close()]));
  return { time, clock, memory, meta, set, append, close };
}

describe('tail set', () => {
  it('[TAIL-SHARED] all connections share one tail a partition, given when it has read what was acknowledged by then', async () => {
    let reads = 0;
    const world = createWorld((log) => ({
      ...log,
      async read(...args) {
        if (args[0].topic === 'events') {
          reads++;
          await new Promise<void>((resolve) => void world.clock.setTimer(30, resolve));
        }
        return log.read(...args);
      },
    }));
    await world.append(null, null, null);
    const [one, two] = await world.time.run(Promise.all([world.set.get(0, OPEN), world.set.get(0, OPEN)]));
    expect(one).toBe(two);
    expect([one?.position(), reads]).toEqual([3, 2]);
    expect(await world.set.get(0, OPEN)).toBe(one);
    expect(await world.time.run(world.set.get(1, OPEN))).not.toBe(one);
    expect(world.set.cacheBytes()).toBe(one?.cacheBytes());
    expect(world.set.cacheBytes()).toBeLessThanOrEqual(1000);
    await world.close();
  });

  it('[LOG-GROWN][TAIL-CACHE] partitions that are added get tails, and all tails together hold no more than before', async () => {
    const world = createWorld();
    const many = async (partition: number): Promise<void> => {
      const records = Array.from({ length: 40 }, () => sent('k', requestStream(1), '{}', { owner: null }));
      await world.memory.append({ topic: 'events', partition }, records);
      await world.time.run(world.set.get(partition, OPEN));
      await world.time.settle();
    };
    for (let partition = 0; partition < 4; partition++) await many(partition);
    const before = world.set.cacheBytes();
    expect(before).toBeGreaterThan(1600);
    world.memory.controls.addPartitions(8);
    await world.time.advance(1);
    for (let partition = 0; partition < 8; partition++) await many(partition);
    expect(world.set.cacheBytes()).toBeGreaterThan(1600);
    expect(world.set.cacheBytes()).toBeLessThanOrEqual(4000);
    await world.close();
  });

  it('[TAIL-HINT] a tail begins at the newest checkpoint that meta tells of', async () => {
    const world = createWorld();
    await world.memory.append(EVENTS, [claimed('w', EPOCH, null)]);
    await world.append(0, 0, 99, 0);
    const hint = JSON.stringify({ offset: 2, claims: [0], worker: 'w' });
    await world.memory.append({ topic: 'meta', partition: 0 }, [
      makeRecord('checkpoint', META_KEY.checkpoint(EPOCH, 0), hint, {}),
    ]);
    await world.time.run(world.meta.sync());
    const tail = await world.time.run(world.set.get(0, OPEN));
    expect(tail?.claims().owner()).toEqual({ claim: 0, worker: 'w', released: false });
    const cursor = tail?.cursor('k', 2);
    expect(offsetsOf(await world.time.run(cursor?.next(OPEN, 0) ?? Promise.reject(new Error('no tail'))))).toEqual([
      2, 4,
    ]);
    await world.close();
  });

  it('[TAIL-SHARED] who gives up while a tail reads gets none, also while the log does not answer', async () => {
    const world = createWorld((log) => ({ ...log, bounds: () => new Promise(() => undefined) }));
    const abort = new AbortController();
    const waiting = world.set.get(0, abort.signal);
    await world.time.settle();
    abort.abort();
    expect(await world.time.run(waiting)).toBeNull();
    expect(await world.set.get(0, abort.signal)).toBeNull();
    await world.close();
  });

  it('[TAIL-SHARED] a log that is not available is told to the caller, and tried again by the next', async () => {
    let fails = true;
    const world = createWorld((log) => ({
      ...log,
      bounds: (of) => (fails ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'not now')) : log.bounds(of)),
    }));
    await expect(world.set.get(0, OPEN)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    fails = false;
    expect(await world.time.run(world.set.get(0, OPEN))).not.toBeNull();
    await world.close();
  });

  it('[TAIL-STOP] stopped, it gives no tails, and cursors of those it gave stop', async () => {
    const world = createWorld();
    const tail = await world.time.run(world.set.get(0, OPEN));
    const waiting = tail?.cursor('k', 0).next(OPEN, 60_000);
    await world.time.run(world.set.stop());
    expect(await waiting).toEqual({ kind: 'stopped' });
    expect(await world.set.get(0, OPEN)).toBeNull();
    await world.time.run(world.meta.close());
    expect(world.time.pending()).toBe(0);
  });

  it('[TAIL-DOUBT] a partition whose history is in doubt has no tail to give, and has one again afterwards', async () => {
    const world = createWorld();
    let isTrusted = true;
    const guard = { noteRead: () => undefined, suspect: () => undefined, trusts: () => Promise.resolve(isTrusted) };
    const { clock, meta, memory: log } = world;
    const set = new TailSet({ log, clock, meta, epoch: EPOCH, cacheBytes: 4000, catchUpReaders: 2, guard });
    await world.append(null, null);
    expect(await world.time.run(set.get(0, OPEN))).not.toBeNull();
    isTrusted = false;
    expect(await world.time.run(set.get(0, OPEN))).toBeNull();
    isTrusted = true;
    const tail = await world.time.run(set.get(0, OPEN));
    expect(tail?.position()).toBe(2);
    log.controls.truncate(EVENTS, 1);
    await world.time.advance(500);
    expect(tail?.isInDoubt()).toBe(true);
    expect(await world.time.run(set.get(0, OPEN))).toBeNull();
    await world.time.run(set.stop());
    await world.close();
  });
});
