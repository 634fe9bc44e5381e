/** What a worker commits to its group, so that lag means work to do. */
import type { JoinOptions, Membership } from '@throughline/log';
import { LogError } from '@throughline/log';
import type { Metrics } from '@throughline/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const lag = async (): Promise<number> => {
  const { end } = await bench.log.bounds(INBOUND);
  return end - ((await bench.log.committed('workers')).get(0) ?? 0);
};

/** A worker whose commits can be watched, and made to fail. */
function watched(fails: () => boolean = () => false): { choice: WorkerChoice; commits: [number, number][] } {
  const commits: [number, number][] = [];
  return {
    commits,
    choice: {
      wrap: (own) => ({
        ...own,
        async join(options: JoinOptions): Promise<Membership> {
          const membership = await own.join(options);
          return {
            ...membership,
            async commit(partition, offset) {
              if (fails()) throw new LogError('LOG_UNAVAILABLE', 'no coordinator');
              commits.push([bench.time.nowMs(), offset]);
              await membership.commit(partition, offset);
            },
          };
        },
      }),
    },
  };
}

describe('committed offsets', () => {
  it('[WRK-LAG] an open request keeps the lag at 1 or more, and answering the lowest brings it down to what is left', async () => {
    bench = await openBench(1);
    const values: number[] = [];
    const metrics: Metrics = {
      add: () => undefined,
      observe: () => undefined,
      set: (name, value) => void (name === 'throughline_worker_lag' && values.push(value)),
    };
    await bench.start({ metrics });
    await bench.open('s');
    await bench.time.advance(1500);
    expect(await lag()).toBe(0);
    const long = await bench.call('s', 1, 'effect', { ms: 20_000 });
    const short = await bench.call('s', 2, 'effect', { ms: 1 });
    await bench.ended(short);
    await bench.time.advance(5000);
    expect(await lag()).toBe(2);
    expect(values.at(-1)).toBe(2);
    await bench.ended(long);
    await bench.time.advance(1500);
    expect(await lag()).toBe(0);
    expect(values.at(-1)).toBe(0);
  });

  it('[WRK-LAG] it commits at most once a second, only what changed, and never goes back', async () => {
    bench = await openBench(2);
    const { choice, commits } = watched();
    await bench.start(choice);
    await bench.open('s');
    for (let id = 1; id <= 40; id++) {
      await bench.call('s', id, 'effect', { ms: (id * 37) % 900 });
      await bench.time.advance(100);
    }
    await bench.time.advance(3000);
    const busy = commits.length;
    expect(busy).toBeGreaterThan(2);
    for (const [index, [atMs, offset]] of commits.entries()) {
      const [beforeMs, before] = commits[index - 1] ?? [-Infinity, -1];
      expect(atMs - beforeMs).toBeGreaterThanOrEqual(1000);
      expect(offset).toBeGreaterThan(before);
    }
    await bench.time.advance(30_000);
    expect(commits).toHaveLength(busy);
  });

  it('[WRK-LAG] a commit that fails is tried again with the next, and costs no call', async () => {
    bench = await openBench(3);
    let isFailing = true;
    const { choice } = watched(() => isFailing);
    await bench.start(choice);
    await bench.open('s');
    await bench.ended(await bench.call('s', 1, 'effect'));
    await bench.time.advance(5000);
    expect(await bench.log.committed('workers')).toEqual(new Map());
    isFailing = false;
    await bench.time.advance(1500);
    expect(await lag()).toBe(0);
  });

  it('[WRK-LAG] a worker that stops has committed what it had done', async () => {
    bench = await openBench(4);
    const first = await bench.start();
    await bench.open('s');
    await bench.ended(await bench.call('s', 1, 'effect'));
    await bench.time.run(first.worker.stop());
    expect(await lag()).toBe(0);
  });

  it('[WRK-LAG] [KAFKA-COMMIT] a lower offset that a foreign member commits runs nothing twice, and is put right', async () => {
    bench = await openBench(5);
    const first = await bench.start();
    await bench.open('s');
    await bench.ended(await bench.call('s', 1, 'effect', { token: 'once' }));
    await bench.time.advance(1500);
    const seat = bench.store.group('workers');
    seat.committed.set(0, 0);
    first.crash();
    await bench.start();
    await bench.ended(await bench.call('s', 2, 'effect', { token: 'other' }));
    await bench.time.advance(1500);
    expect(bench.runs.map(({ token }) => token)).toEqual(['once', 'other']);
    expect(await lag()).toBe(0);
  });
});
