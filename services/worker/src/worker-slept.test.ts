/** What a worker does that was still while another took its place, and what is left of one that went too early. */
import { afterEach, describe, expect, it } from 'vitest';
import { EVENT_TYPE } from '@throughline/protocol';
import { typeOf } from './testing/messages.ts';
import { EVENTS, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const DEAD_AFTER_MS = 400;
const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: DEAD_AFTER_MS, drainMs: 2000 } };

/** Of each topic, until when (in virtual milliseconds) its reads wait. */
type Late = Partial<Record<'events' | 'inbound' | 'meta', number>>;

async function startLate(late: Late, config: WorkerChoice['config'] = {}): Promise<BenchWorker> {
  return bench.start({
    config: { ...QUICK.config, ...config },
    wrap: (log) => ({
      ...log,
      read: async (from, position, options) => {
        const clock = bench.time.clock();
        const isLate = (): boolean => clock.monoMs() < (late[from.topic as keyof Late] ?? 0);
        let batch = isLate() ? null : await log.read(from, position, options);
        while (batch === null || isLate()) {
          await new Promise<void>((resolve) => clock.setTimer(10, resolve));
          if (!isLate()) batch = await log.read(from, position, options);
        }
        return batch;
      },
    }),
  });
}

describe('an owner that slept', () => {
  it.each([
    ['before it has seen itself alive again', 500],
    ['also when it has seen itself alive again', 0],
  ])('[WRK-SLEPT] runs nothing before it knows whether it was replaced, %s', async (_, metaMs) => {
    bench = await openBench(41);
    const late: Late = {};
    const first = await startLate(late);
    await bench.open('k');
    late.inbound = late.events = late.meta = Number.POSITIVE_INFINITY;
    bench.time.pause(first.process);
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    // It leaves no record of its start.
    await bench.ended(await bench.call('k', 1, 'lookup'));
    const now = bench.time.clock().monoMs();
    late.meta = now + metaMs;
    late.inbound = now + 200;
    late.events = now + 1000;
    bench.time.resume(first.process);
    await bench.time.advance(20_000);
    expect(bench.runs.map(({ worker }) => worker)).toEqual(['worker-2']);
    expect(first.worker.owned()).toEqual([]);
  });

  it('[WRK-SLEPT] runs nothing that waited for a place, either, before it knows', async () => {
    bench = await openBench(43);
    const late: Late = {};
    const first = await startLate(late, { maxRunningPerSession: 1 });
    await bench.open('k');
    await bench.call('k', 1, 'effect', { ms: 500, token: 'first' });
    const waiting = await bench.call('k', 2, 'lookup', { token: 'waits' });
    await bench.until(() => bench.runs.length === 1);
    late.inbound = late.events = Number.POSITIVE_INFINITY;
    bench.time.pause(first.process);
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    await bench.ended(waiting);
    late.inbound = late.events = bench.time.clock().monoMs() + 2000;
    bench.time.resume(first.process);
    await bench.time.advance(20_000);
    expect(bench.runs.map(({ worker, token }) => `${worker} ${token}`)).toEqual(['worker-1 first', 'worker-2 waits']);
  });
});

describe('a claim that is on its way', () => {
  it.each([
    ['and comes into force within its deadline', 1000],
    ['and comes into force after it', 12_000],
  ])('[WRK-LATE-CLAIM] when its maker leaves the partition, %s, is released', async (_, delayMs) => {
    bench = await openBench(42);
    let assign: (partitions: readonly number[]) => void = () => undefined;
    let isSlow = true;
    const { started } = bench.starting({
      config: { ...QUICK.config, appendTimeoutMs: 10_000 },
      wrap: (log) => ({
        ...log,
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
        append: async (to, records) => {
          if (
            to.topic === 'events' &&
            isSlow &&
            records.some(({ headers }) => typeOf(headers) === EVENT_TYPE.claimed)
          ) {
            isSlow = false;
            await new Promise<void>((resolve) => bench.time.clock().setTimer(delayMs, resolve));
          }
          return log.append(to, records);
        },
      }),
    });
    started.catch(() => undefined);
    await bench.until(() => !isSlow);
    assign([]);
    await bench.time.advance(60_000);
    expect(bench.records(EVENTS).map(({ headers }) => typeOf(headers))).toEqual([
      EVENT_TYPE.claimed,
      EVENT_TYPE.released,
    ]);
  });
});
