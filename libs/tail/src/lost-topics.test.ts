import type { Log } from '@throughline/log';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import { encodeText, makeRecord, META_KEY } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { HistoryGuard } from './history-guard.ts';
import { Meta } from './meta.ts';
import { SessionDirectory } from './session-directory.ts';

const META = { topic: 'meta', partition: 0 } as const;
const SESSIONS = { topic: 'sessions', partition: 0 } as const;
const note = (key: string) => ({ key: encodeText(key), value: encodeText('x'), headers: [] });

function createWorld() {
  const time = createVirtualTime({ seed: 1 });
  const store = createMemoryStore({ clock: time.clock(), partitions: 1, clusterId: 'here' });
  /** Another process, with a guard and a directory as a gateway has them. */
  const join = async (name: string, wrap: (log: Log) => Log = (log) => log) => {
    const clock = time.clock(name);
    const log = wrap(openMemoryLog(store, { clock }));
    const meta = new Meta({ log, clock });
    const epoch = await time.run(meta.ensureEpoch(time.random));
    const [told, counted]: [string[], string[]] = [[], []];
    const guard = new HistoryGuard({
      log,
      clock,
      random: time.random,
      meta,
      logger: { warn: (event) => void told.push(event), error: (event) => void told.push(event) },
      onCount: (what, topic) => counted.push(`${what} ${topic}`),
    });
    const directory = new SessionDirectory({
      log,
      clock,
      partitions: [0],
      maxLifeMs: 1e9,
      keepRecords: false,
      onFinding: (finding, partition, readMs) => {
        guard.noteView({ topic: 'sessions', partition }, finding, readMs);
      },
    });
    const epochs: string[] = [];
    meta.onEpoch((next) => epochs.push(next));
    await time.run(directory.sync());
    return { log, meta, guard, directory, epoch, told, counted, epochs };
  };
  const log = openMemoryLog(store, { clock: time.clock() });
  return { time, store, log, join };
}

describe('meta made anew under processes that run', () => {
  it('[TAIL-META-LOST] one new epoch follows, for all of them; the former one stays known and does not come back', async () => {
    const { time, store, join } = createWorld();
    const a = await join('a');
    const b = await join('b');
    expect(b.epoch).toBe(a.epoch);
    store.controls.recreate('meta');
    await time.advance(10_000);
    expect(a.meta.epoch()).not.toBe(a.epoch);
    expect(b.meta.epoch()).toBe(a.meta.epoch());
    for (const { meta, epochs, guard, counted, told, epoch } of [a, b]) {
      expect(epochs).toEqual([a.meta.epoch()]);
      expect(meta.epochs().map(({ token }) => token)).toEqual([epoch, a.meta.epoch()]);
      expect(meta.isFormer(epoch)).toBe(true);
      expect([meta.hasLostEpoch(), guard.isBroken(), guard.isViewInDoubt()]).toEqual([false, false, false]);
      expect(counted[0]).toBe('suspected meta');
      expect(told).toContain('a compacted topic was made anew, or lost its end; it is read again from its start');
    }
    const c = await join('c');
    expect(c.epoch).toBe(a.meta.epoch());
    await time.advance(60_000);
    expect([a, b].map(({ meta }) => meta.epoch())).toEqual([c.epoch, c.epoch]);
  });

  it('[TAIL-META-LOST] an epoch that another process has made meanwhile is taken, not replaced', async () => {
    const { time, store, join, log } = createWorld();
    const a = await join('a');
    store.controls.recreate('meta');
    const other = new Meta({ log, clock: time.clock('starter') });
    const made = await time.run(other.ensureEpoch(time.random));
    await time.advance(10_000);
    expect(a.meta.epoch()).toBe(made);
    expect(a.epochs).toEqual([made]);
    expect(a.counted).not.toContain('proved meta');
  });

  /** `meta` is made anew, and has grown past what `a` has read before it reads again: nothing shows it to `a` by itself. */
  const regrowUnseen = async () => {
    const world = createWorld();
    const { time, store, log } = world;
    const gate: { until: Promise<void> | null } = { until: null };
    const a = await world.join('a', (own) => ({
      ...own,
      async read(from, position, options) {
        const batch = own.read(from, position, options);
        await gate.until;
        return batch;
      },
    }));
    let open = (): void => undefined;
    await time.advance(900);
    gate.until = new Promise((resolve) => (open = resolve));
    // The read that was under way has ended.
    await time.advance(1100);
    store.controls.recreate('meta');
    const other = new Meta({ log, clock: time.clock('starter') });
    const made = await time.run(other.ensureEpoch(time.random));
    await log.append(META, [note('mark/x'), note('mark/y')]);
    await time.advance(100);
    gate.until = null;
    open();
    await time.advance(3000);
    expect([a.meta.epoch(), a.meta.hasLostEpoch(), a.told]).toEqual([a.epoch, false, []]);
    return { ...world, a, made };
  };

  it('[TAIL-EPOCH-HEARD] a heartbeat that names an epoch that is not known makes a process read all of meta again', async () => {
    const { time, log, a, made } = await regrowUnseen();
    const worker = { worker: 'w', epoch: made, partitions: [0], leaving: false, beat: 1 };
    await log.append(META, [makeRecord('worker', META_KEY.worker('w'), JSON.stringify(worker), {})]);
    await time.advance(3000);
    expect([a.meta.epoch(), a.epochs]).toEqual([made, [made]]);
    expect(a.meta.livePartitions(made, 10_000)).toEqual([0]);
    expect([a.guard.isBroken(), a.guard.isViewInDoubt()]).toEqual([false, false]);
  });

  it("[TAIL-EPOCH-HEARD] a claim of an epoch that is not known is answered when all of meta was read again; one that is nobody's costs one reading", async () => {
    const { time, a, made } = await regrowUnseen();
    const never = new AbortController().signal;
    expect(await time.run(a.meta.isStillInForce(a.epoch, made, never))).toBe(false);
    expect(a.meta.epoch()).toBe(made);
    const again = () => a.told.filter((event) => event.startsWith('a compacted topic is read again')).length;
    expect(again()).toBe(1);
    for (let asked = 0; asked < 2; asked++)
      expect(await time.run(a.meta.isStillInForce(made, 'nobodys000', never))).toBe(true);
    expect(again()).toBe(2);
    expect(await time.run(a.meta.isStillInForce(made, a.epoch, never))).toBe(true);
    expect(again()).toBe(2);
    expect(await time.run(a.meta.isStillInForce(made, 'unasked000', AbortSignal.abort()))).toBe(false);
  });

  it('[TAIL-META-LOST] a lost end that did not hold the epoch costs no session', async () => {
    const { time, store, join, log } = createWorld();
    const a = await join('a');
    await log.append(META, [note('mark/x'), note('mark/y')]);
    await time.run(a.meta.sync());
    store.controls.truncate(META, 1);
    await time.advance(10_000);
    expect(a.meta.epoch()).toBe(a.epoch);
    expect([a.epochs, a.guard.isBroken(), a.guard.isViewInDoubt()]).toEqual([[], false, false]);
    expect(a.told).toContain('a compacted topic was made anew, or lost its end; it is read again from its start');
  });

  it('[TAIL-META-LOST] a rotation that is lost does not bring back the epoch before it', async () => {
    const { time, store, join } = createWorld();
    const a = await join('a');
    await time.run(a.meta.proposeEpoch(time.random, a.epoch, 'by an operator'));
    await time.run(a.meta.sync());
    const [second] = a.epochs;
    expect(a.meta.epoch()).toBe(second);
    store.controls.truncate(META, 1);
    await time.advance(10_000);
    expect(a.epochs).toHaveLength(2);
    expect(a.meta.epoch()).toBe(a.epochs[1]);
    expect([a.epoch, second]).not.toContain(a.meta.epoch());
  });
});

describe('sessions made anew under processes that run', () => {
  it('[TAIL-SESSIONS-LOST] one new epoch ends all sessions, and what had ended does not live again', async () => {
    const { time, store, join } = createWorld();
    const a = await join('a');
    const b = await join('b');
    await time.run(a.directory.end(0, 'key', 'deleted'));
    await time.run(b.directory.sync());
    expect(b.directory.hasEnded(0, 'key')).toBe(true);
    store.controls.recreate('sessions');
    await time.advance(10_000);
    expect(a.epochs).toHaveLength(1);
    expect(b.epochs).toEqual(a.epochs);
    for (const { directory, counted, guard } of [a, b]) {
      expect(directory.hasEnded(0, 'key')).toBe(true);
      expect(counted).toContain('suspected sessions');
      expect(guard.isBroken()).toBe(false);
    }
    expect(a.meta.epochs()[1]?.reason).toBe('sessions/0: made anew, or lost its end');
    await time.advance(60_000);
    expect(a.epochs).toHaveLength(1);
  });

  it('[GRD-VIEWS] while the end lies behind what was read nothing is proved: no new epoch, and the process says that it is in doubt', async () => {
    const { time, join, log } = createWorld();
    let isBehind = false;
    const a = await join('a', (own) => ({
      ...own,
      bounds: async (of) => {
        const bounds = await own.bounds(of);
        return isBehind && of.topic === 'sessions' ? { start: 0, end: 0 } : bounds;
      },
    }));
    await log.append(SESSIONS, [note('one')]);
    await time.run(a.directory.sync());
    isBehind = true;
    const synced = a.directory.sync();
    let isSynced = false;
    void synced.then(() => (isSynced = true));
    await time.advance(4000);
    expect([isSynced, a.guard.isViewInDoubt(), a.guard.isBroken()]).toEqual([false, true, false]);
    isBehind = false;
    await time.advance(2000);
    expect([isSynced, a.guard.isViewInDoubt(), a.epochs]).toEqual([true, false, []]);
    expect(a.counted).toEqual(['suspected sessions']);
  });
});
