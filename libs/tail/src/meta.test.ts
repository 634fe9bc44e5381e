import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import { makeRecord, META_KEY } from '@throughline/protocol';
import { createSeededRandom, createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { Meta } from './meta.ts';

const META = { topic: 'meta', partition: 0 } as const;

function createWorld(seed = 1) {
  const time = createVirtualTime({ seed });
  const store = createMemoryStore({ clock: time.clock(), partitions: 2, clusterId: 'here' });
  const join = (name: string) => {
    const clock = time.clock(name);
    const log = openMemoryLog(store, { clock });
    return { log, clock, meta: new Meta({ log, clock }) };
  };
  const append = (type: string, key: string, value: unknown) =>
    openMemoryLog(store, { clock: time.clock() }).append(META, [
      makeRecord(type, key, value === null ? null : JSON.stringify(value), {}),
    ]);
  const beat = (worker: string, change: object = {}) =>
    append('worker', META_KEY.worker(worker), {
      worker,
      epoch: 'epochaaaaa',
      partitions: [0],
      leaving: false,
      beat: 1,
      ...change,
    });
  const log = openMemoryLog(store, { clock: time.clock() });
  return { time, store, log, join, append, beat };
}

describe('epoch of the log', () => {
  it('[TAIL-EPOCH] processes that start at once agree on one epoch, the first in the log', async () => {
    const epochs = new Set<string>();
    for (let seed = 0; seed < 50; seed++) {
      const { time, join } = createWorld(seed);
      const members = Array.from({ length: 5 }, (_, index) => join(`p${index}`));
      const made = await time.run(
        Promise.all(
          members.map(async ({ meta, clock }, index) => {
            await new Promise<void>((resolve) => void clock.setTimer(time.random.below(3), resolve));
            return meta.ensureEpoch(createSeededRandom(seed * 100 + index));
          }),
        ),
      );
      expect(new Set(made).size).toBe(1);
      const late = join('late');
      expect(await time.run(late.meta.ensureEpoch(createSeededRandom(9)))).toBe(made[0]);
      expect(members.map(({ meta }) => meta.epoch())).toEqual(made);
      epochs.add(made[0] ?? '');
      await time.run(Promise.all([...members, late].map(({ meta }) => meta.close())));
    }
    expect(epochs.size).toBeGreaterThan(40);
  });

  it('[TAIL-EPOCH] an append of unknown outcome is looked for in the log, and made again only if it is not there', async () => {
    for (const fault of ['unknown-stored', 'unknown-lost'] as const) {
      const { time, join, log } = createWorld();
      const a = join('a');
      a.log.failAppends(fault);
      const append = a.log.append.bind(a.log);
      let appends = 0;
      a.log.append = (...args) => {
        if (++appends > 1) a.log.failAppends(null);
        return append(...args);
      };
      const epoch = await time.run(a.meta.ensureEpoch(createSeededRandom(1)));
      expect(epoch).toBe(a.meta.epoch());
      expect(appends).toBe(fault === 'unknown-stored' ? 1 : 2);
      expect((await log.bounds(META)).end).toBe(1);
      a.log.append = append;
      await time.run(a.meta.close());
    }
    const { time, join } = createWorld();
    const a = join('a');
    a.log.failAppends('refused');
    await expect(time.run(a.meta.ensureEpoch(createSeededRandom(1)))).rejects.toMatchObject({ code: 'APPEND_REFUSED' });
    a.log.failAppends('unknown-lost');
    await expect(time.run(a.meta.ensureEpoch(createSeededRandom(1)))).rejects.toMatchObject({ code: 'APPEND_UNKNOWN' });
    await time.run(a.meta.close());
  });

  it('[TAIL-EPOCH] of two rotations of the same epoch one counts, and every process is told once', async () => {
    const { time, join } = createWorld();
    const [a, b] = [join('a'), join('b')];
    const first = await time.run(a.meta.ensureEpoch(createSeededRandom(1)));
    await time.settle();
    const told: string[] = [];
    b.meta.onEpoch((epoch) => told.push(epoch));
    const stop = b.meta.onEpoch(() => told.push('not to be told'));
    stop();
    await time.run(
      Promise.all([
        a.meta.proposeEpoch(createSeededRandom(2), first, 'one'),
        b.meta.proposeEpoch(createSeededRandom(3), first, 'two'),
      ]),
    );
    await time.run(Promise.all([a.meta.sync(), b.meta.sync()]));
    expect(a.meta.epoch()).toBe(b.meta.epoch());
    expect(a.meta.epoch()).not.toBe(first);
    expect(told).toEqual([a.meta.epoch()]);
    await time.run(Promise.all([a.meta.close(), b.meta.close()]));
  });

  it('[TAIL-EPOCH] compaction forgets no epoch: a void candidate does not hide the one that counts', async () => {
    const { time, join, store } = createWorld();
    const a = join('a');
    const first = await time.run(a.meta.ensureEpoch(createSeededRandom(1)));
    await time.run(a.meta.proposeEpoch(createSeededRandom(2), 'nosuchepoc', 'void'));
    store.controls.compact('meta');
    const b = join('b');
    await time.run(b.meta.sync());
    expect(b.meta.epoch()).toBe(first);
    await time.run(Promise.all([a.meta.close(), b.meta.close()]));
  });
});

describe('heartbeats', () => {
  it('[TAIL-ALIVE] a worker lives for as long as asked after its heartbeat was seen, whatever its wall clock says', async () => {
    const { time, join, beat } = createWorld();
    const { meta } = join('a');
    await beat('w');
    await time.advance(0);
    expect(meta.isAlive('w', 1000)).toBe(true);
    expect(meta.isAlive('nobody', 1000)).toBe(false);
    await time.advance(1000);
    expect(meta.isAlive('w', 1000)).toBe(true);
    await time.advance(1);
    expect(meta.isAlive('w', 1000)).toBe(false);
    await beat('w', { beat: 2 });
    await time.advance(0);
    expect(meta.isAlive('w', 1000)).toBe(true);
    await time.run(meta.close());
  });

  it('[TAIL-ALIVE] a worker that took its heartbeat back is gone at once', async () => {
    const { time, join, beat, append } = createWorld();
    const { meta } = join('a');
    await beat('w');
    await append('worker', META_KEY.worker('w'), null);
    await time.advance(0);
    expect(meta.isAlive('w', 1000)).toBe(false);
    await time.run(meta.close());
  });

  it('[TAIL-LIVE] new sessions go to partitions of living workers of this epoch that do not leave', async () => {
    const { time, join, beat } = createWorld();
    const { meta } = join('a');
    await beat('old', { partitions: [7] });
    await time.advance(2000);
    await beat('one', { partitions: [3, 1] });
    await beat('two', { partitions: [1, 2] });
    await beat('leaver', { partitions: [5], leaving: true });
    await beat('former', { partitions: [6], epoch: 'epochbbbbb' });
    await time.advance(0);
    expect(meta.livePartitions('epochaaaaa', 1000)).toEqual([1, 2, 3]);
    expect(meta.livePartitions('epochaaaaa', 5000)).toEqual([1, 2, 3, 7]);
    await time.run(meta.close());
  });
});

describe('checkpoint hints', () => {
  it('[TAIL-HINTS] the newest place counts, and at one place the longer list of claims; a late write changes nothing', async () => {
    const { time, join, append } = createWorld();
    const { meta } = join('a');
    const told = async (offset: number, claims: number[]) => {
      await append('checkpoint', META_KEY.checkpoint('epochaaaaa', 0), { offset, claims, worker: `w${claims.length}` });
      await time.advance(0);
      return meta.hint('epochaaaaa', 0);
    };
    expect(meta.hint('epochaaaaa', 0)).toBeNull();
    expect(await told(10, [1])).toMatchObject({ offset: 10, claims: [1] });
    expect(await told(10, [1, 12])).toMatchObject({ offset: 10, claims: [1, 12] });
    expect(await told(10, [1])).toMatchObject({ offset: 10, claims: [1, 12] });
    expect(await told(5, [1])).toMatchObject({ offset: 10 });
    expect(await told(20, [1, 12])).toEqual({ offset: 20, claims: [1, 12], worker: 'w2' });
    expect(await told(15, [1, 12])).toMatchObject({ offset: 20 });
    await append('checkpoint', META_KEY.checkpoint('epochaaaaa', 0), { offset: 30, claims: [9, 1] });
    await time.advance(0);
    expect(meta.hint('epochaaaaa', 0)?.offset).toBe(20);
    expect(meta.hint('epochaaaaa', 1)).toBeNull();
    expect(meta.hint('epochbbbbb', 0)).toBeNull();
    await time.run(meta.close());
  });

  it('[TAIL-HINTS] listeners hear of every record until they stop', async () => {
    const { time, join, beat } = createWorld();
    const { meta } = join('a');
    let heard = 0;
    const stop = meta.onChange(() => {
      heard++;
    });
    await beat('w', { epoch: '' });
    await beat('w', { epoch: '', beat: 2 });
    await time.advance(0);
    expect(heard).toBe(2);
    stop();
    await beat('w', { epoch: '', beat: 3 });
    await time.advance(0);
    expect(heard).toBe(2);
    await time.run(meta.close());
  });
});

describe('marks of the history', () => {
  const of = (topic: 'events' | 'inbound') => ({ topic, partition: 0 });

  it('[TAIL-MARKS] the highest end and the newest anchor count, by epoch and partition; late writes take nothing back', async () => {
    const { time, join } = createWorld();
    const [a, b] = [join('a'), join('b')];
    expect(b.meta.mark('epochaaaaa', of('events'))).toBeNull();
    await a.meta.tellMarks('epochaaaaa', [
      [of('events'), { end: 9, anchor: { offset: 8, check: 5 } }],
      [of('inbound'), { end: 3, anchor: null }],
    ]);
    await a.meta.tellMarks('epochaaaaa', [[of('events'), { end: 7, anchor: { offset: 6, check: 4 } }]]);
    await a.meta.tellMarks('epochaaaaa', []);
    await time.run(b.meta.sync());
    expect(b.meta.mark('epochaaaaa', of('events'))).toEqual({ end: 9, anchor: { offset: 8, check: 5 } });
    expect(b.meta.mark('epochaaaaa', of('inbound'))).toEqual({ end: 3, anchor: null });
    expect(b.meta.mark('epochbbbbb', of('events'))).toBeNull();
    expect(b.meta.mark('epochaaaaa', { topic: 'events', partition: 1 })).toBeNull();
    await time.run(Promise.all([a.meta.close(), b.meta.close()]));
  });

  it('[TAIL-MARKS] a checkpoint that was told of is a mark of events', async () => {
    const { time, join, append } = createWorld();
    const { meta } = join('a');
    const key = META_KEY.checkpoint('epochaaaaa', 0);
    await append('checkpoint', key, { offset: 4, claims: [1], worker: 'w' });
    await time.advance(0);
    expect(meta.mark('epochaaaaa', of('events'))).toEqual({ end: 5, anchor: null });
    expect(meta.mark('epochaaaaa', of('inbound'))).toBeNull();
    await time.run(meta.close());
  });

  it('[TAIL-EPOCH] all epochs that were in force are told in their order, with reason, time and cluster', async () => {
    const { time, join } = createWorld();
    const { meta } = join('a');
    const first = await time.run(meta.ensureEpoch(createSeededRandom(1)));
    await time.run(meta.proposeEpoch(createSeededRandom(2), first, 'by an operator'));
    await time.run(meta.proposeEpoch(createSeededRandom(3), first, 'too late'));
    await time.run(meta.sync());
    expect(meta.epochs()).toMatchObject([
      { token: first, previous: null, reason: 'first start', clusterId: 'here' },
      { token: meta.epoch(), previous: first, reason: 'by an operator', clusterId: 'here' },
    ]);
    expect(meta.epochs()[1]?.atMs).toBeGreaterThan(1_000_000_000_000);
    expect([meta.isFormer(first), meta.isFormer(meta.epoch() ?? ''), meta.isFormer('unknown')]).toEqual([
      true,
      false,
      false,
    ]);
    await time.run(meta.close());
  });

  it('[LOG-VIEW-SYNC] a log that does not answer holds up nobody who has a deadline', async () => {
    const { time, join } = createWorld();
    const { log, clock } = join('a');
    const meta = new Meta({ log: { ...log, bounds: () => new Promise(() => undefined) }, clock });
    const gone = new AbortController();
    const synced = meta.sync(gone.signal);
    gone.abort();
    await expect(time.run(synced)).rejects.toMatchObject({ code: 'ABORTED' });
    await time.run(meta.close());
  });
});
