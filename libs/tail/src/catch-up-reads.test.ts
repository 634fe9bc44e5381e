import { LogError } from '@throughline/log';
import type { Log } from '@throughline/log';
import { requestStream } from '@throughline/protocol';
import type { Offset } from '@throughline/protocol';
import { sent } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { CatchUpPool } from './catch-up-pool.ts';
import { CatchUpReads } from './catch-up-reads.ts';
import type { CatchUpRead } from './catch-up-reads.ts';
import { createRig, EVENTS, OPEN, spyReads } from './testing/log-rig.ts';
import type { ReadCall, Rig } from './testing/log-rig.ts';

interface Setup {
  readonly rig: Rig;
  readonly calls: ReadCall[];
  readonly errors: unknown[];
  readonly doubts: Offset[];
  readonly reads: CatchUpReads;
  /** Reads of a log whose answers come from a place that `source` names. */
  readsFrom(source: () => string): CatchUpReads;
}

/** Ten records of 100 KB: a read brings two of them. */
async function setUp(before?: (rig: Rig) => Promise<void> | void): Promise<Setup> {
  const rig = createRig();
  await rig.append(...Array.from({ length: 10 }, () => sent('k', requestStream(1), 'x'.repeat(100_000))));
  const newest = (await rig.log.read(EVENTS, 9)).records[0] ?? null;
  const [calls, errors, doubts]: [ReadCall[], unknown[], Offset[]] = [[], [], []];
  const log = spyReads(rig.log, calls, () => before?.(rig));
  const readsOf = (from: Log): CatchUpReads =>
    new CatchUpReads({
      log: from,
      clock: rig.clock,
      partition: 0,
      chunkBytes: 0,
      pool: new CatchUpPool(4),
      folded: () => 10,
      newest: () => newest,
      isInDoubt: () => false,
      onDoubt: (seen) => void doubts.push(seen),
      onError: (error) => void errors.push(error),
    });
  const readsFrom = (source: () => string): CatchUpReads =>
    readsOf({ ...log, read: async (...args) => ({ ...(await log.read(...args)), source: source() }) });
  return { rig, calls, errors, doubts, reads: readsOf(log), readsFrom };
}

const told = (read: CatchUpRead): unknown => (read.kind === 'chunk' ? [read.chunk.from, read.chunk.next] : read.kind);

describe('catch-up reads of a partition', () => {
  it('[TAIL-ROUNDS] who waits within what is read for another needs no read of its own', async () => {
    const { rig, reads, calls } = await setUp();
    const results = await rig.finish(Promise.all([0, 5, 4, 1].map((position) => reads.read(position, OPEN))));
    expect(results.map(told)).toEqual([
      [0, 2],
      [4, 6],
      [4, 6],
      [0, 2],
    ]);
    expect(calls.map(({ position }) => position)).toEqual([0, 4]);
  });

  it('[TAIL-ROUNDS] a failure is told once and gives everyone who waits an empty chunk at its own place', async () => {
    let failures = 1;
    const { rig, reads, calls, errors } = await setUp(() => {
      if (failures-- > 0) throw new LogError('LOG_UNAVAILABLE', 'not now');
    });
    const results = await rig.finish(Promise.all([0, 9, 4].map((position) => reads.read(position, OPEN))));
    expect(results.map(told)).toEqual([
      [0, 0],
      [9, 9],
      [4, 4],
    ]);
    expect([errors.length, calls.length]).toEqual([1, 1]);
    expect(told(await rig.finish(reads.read(9, OPEN)))).toEqual([9, 10]);
  });

  it('[TAIL-ROUNDS] who has waited as long as it may hears so, and the others wait on', async () => {
    const { rig, reads } = await setUp(({ clock }) => new Promise((resolve) => void clock.setTimer(1000, resolve)));
    const first = reads.read(0, OPEN);
    const late = reads.read(5, OPEN, 300);
    const patient = reads.read(5, OPEN);
    expect(told(await rig.finish(late))).toBe('late');
    expect(rig.time.nowMs()).toBe(300);
    expect((await rig.finish(Promise.all([first, patient]))).map(told)).toEqual([
      [0, 2],
      [5, 7],
    ]);
  });

  it('[TAIL-ROUNDS] when all who wait have gone the read is ended, and whoever comes next is served', async () => {
    const { rig, reads, errors } = await setUp();
    const abort = new AbortController();
    const left = reads.read(0, abort.signal);
    abort.abort();
    const next = reads.read(3, OPEN);
    expect([told(await rig.finish(left)), told(await rig.finish(next))]).toEqual(['stopped', [3, 5]]);
    expect(errors).toEqual([]);
  });

  it('[TAIL-STEADY] after a failure within a read, what was folded last is read again before an older record is given', async () => {
    const { rig, doubts, calls, readsFrom } = await setUp();
    let source = 'leader 1';
    const reads = readsFrom(() => source);
    expect(told(await rig.finish(reads.read(0, OPEN)))).toEqual([0, 2]);
    expect(told(await rig.finish(reads.read(4, OPEN)))).toEqual([4, 6]);
    expect(calls.map(({ position }) => position)).toEqual([0, 9, 4]);
    source = 'leader 2';
    expect(told(await rig.finish(reads.read(2, OPEN)))).toEqual([2, 4]);
    expect(calls.map(({ position }) => position).slice(3)).toEqual([2, 9]);
    // It lost its end, and has taken other records since: nothing of it is given.
    rig.log.controls.truncate(EVENTS, 5);
    await rig.append(...Array.from({ length: 6 }, () => sent('k', requestStream(1), 'y'.repeat(100_000))));
    source = 'leader 3';
    expect(told(await rig.finish(reads.read(6, OPEN)))).toEqual([6, 6]);
    expect(doubts).toEqual([10]);
  });

  it('[TAIL-ROUNDS] after a stop everyone who waits is stopped, and nothing is read', async () => {
    const { rig, reads, calls } = await setUp();
    const waiting = [reads.read(0, OPEN), reads.read(5, OPEN)];
    reads.stop();
    expect((await rig.finish(Promise.all([...waiting, reads.read(7, OPEN)]))).map(told)).toEqual(
      Array(3).fill('stopped'),
    );
    expect(calls.map(({ position }) => position)).toEqual([0]);
  });
});
