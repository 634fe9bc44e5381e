/** What a worker that joins costs: docs/operations/replacing-workers.md says this to operators. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Log } from '@throughline/log';
import { errorOf, textOf } from './testing/messages.ts';
import { openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

const DRAIN_MS = 3000;
let bench: Bench;
let first: BenchWorker;
let second: BenchWorker;
let assign: Map<string, (assigned: readonly number[]) => void>;

/** A worker of a group whose assignment the test gives. */
function member(name: string, assigned: readonly number[], choice: WorkerChoice = {}): WorkerChoice {
  return {
    ...choice,
    config: { heartbeatMs: 100, deadAfterMs: 400, drainMs: DRAIN_MS, ...choice.config },
    wrap: (log): Log => ({
      ...log,
      async join(options) {
        const membership = await log.join(options);
        assign.set(name, options.onChange);
        return { ...membership, assigned: () => assigned };
      },
    }),
  };
}

/** The group gives the partition to the worker that joined. What it returns resolves when that serves it, with how long nobody did. */
function beginMove(): () => Promise<number> {
  const since = bench.time.nowMs();
  assign.get('first')?.([]);
  assign.get('second')?.([0]);
  return async () => {
    await bench.until(() => second.worker.owned().length === 1);
    return bench.time.nowMs() - since;
  };
}

const move = (): Promise<number> => beginMove()();

async function start(choice: WorkerChoice = {}): Promise<void> {
  first = await bench.start(member('first', [0], choice));
  second = await bench.start(member('second', [], choice));
  await bench.open('k');
}

beforeEach(async () => {
  assign = new Map();
  bench = await openBench(1);
});
afterEach(() => bench.dispose());

const runs = (): string[] => bench.runs.map(({ worker, token }) => `${worker} ${token}`);

describe('a partition that goes to a worker that joins', () => {
  it('[WRK-LEAVE] is served again as soon as its running calls are through; what comes meanwhile waits, and runs there', async () => {
    await start();
    const running = await bench.call('k', 1, 'effect', { ms: 1000, token: 'running' });
    await bench.until(() => bench.runs.length === 1);
    const moved = beginMove();
    await bench.time.advance(100);
    const late = await bench.call('k', 2, 'effect', { token: 'late' });
    expect(await moved()).toBeLessThan(DRAIN_MS);
    for (const at of [running, late]) expect(textOf((await bench.ended(at)).messages[0])).toMatch(/^effect/);
    expect(runs()).toEqual(['worker-1 running', 'worker-2 late']);
  });

  it('[WRK-LEAVE] is served again after the drain time at the latest: a call with effects that takes longer ends with OWNER_LOST', async () => {
    await start();
    const long = await bench.call('k', 1, 'effect', { ms: 60_000, token: 'long' });
    await bench.until(() => bench.runs.length === 1);
    const ms = await move();
    expect(ms).toBeGreaterThanOrEqual(DRAIN_MS);
    expect(ms).toBeLessThan(DRAIN_MS + 2000);
    expect(errorOf((await bench.ended(long)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(runs()).toEqual(['worker-1 long']);
    // The session went along.
    expect(textOf((await bench.ended(await bench.call('k', 2, 'effect'))).messages[0])).toBe('effect ');
  });

  it.each(['lookup', 'upsert'])(
    '[WRK-TAKEOVER] a long %s runs once more there if it has said nothing',
    async (tool) => {
      await start();
      const long = await bench.call('k', 1, tool, { ms: 5000, token: 'long' });
      await bench.until(() => bench.runs.length === 1);
      await move();
      expect(textOf((await bench.ended(long)).messages[0])).toMatch(/long$/);
      expect(runs()).toEqual(['worker-1 long', 'worker-2 long']);
    },
  );

  it('[WRK-RESTORE] takes every session of a terminate server to its end, whatever ran in it', async () => {
    await start({ onOwnerLoss: 'terminate' });
    await move();
    await bench.until(() => bench.session('k').endReason !== null);
    expect(bench.session('k').endReason).toBe('owner-lost');
    expect(first.worker.owned()).toEqual([]);
  });

  it('[WRK-RESTORE] gives the calls of a terminate server that finish in time their result, and runs nothing of the others once more', async () => {
    await start({ onOwnerLoss: 'terminate' });
    const brief = await bench.call('k', 1, 'lookup', { ms: 1000, token: 'brief' });
    const long = await bench.call('k', 2, 'lookup', { ms: 60_000, token: 'long' });
    await bench.until(() => bench.runs.length === 2);
    const moved = beginMove();
    await bench.time.advance(100);
    const late = await bench.call('k', 3, 'effect', { token: 'late' });
    const lateLook = await bench.call('k', 4, 'lookup', { token: 'late look' });
    await moved();
    expect(textOf((await bench.ended(brief)).messages[0])).toMatch(/brief$/);
    expect(errorOf((await bench.ended(long)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(errorOf((await bench.ended(late)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: false });
    // Of a tool that changes nothing the log does not say whether it had begun: docs/adr/0003.
    expect(errorOf((await bench.ended(lateLook)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(runs()).toEqual(['worker-1 brief', 'worker-1 long']);
  });
});
