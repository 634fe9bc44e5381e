/** What the servers of one principal take from the calls of another, in virtual time: a log that takes its time, alone and beside a flood. */
import { afterEach, expect, it } from 'vitest';
import type { RecordInput } from '@throughline/protocol';
import { progressOf, textOf } from './testing/messages.ts';
import { openBench } from './testing/worker-bench.ts';
import type { Bench } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const KIB = 1024;
const MIB = 1024 * KIB;
const GREEDY = { principal: 'greedy' };
const MODEST = { principal: 'modest' };
/** Of the log: for each append, and for each MiB of it. */
const [COMMIT_MS, MIB_MS] = [10, 40];

const bytesOf = (records: readonly RecordInput[]): number =>
  records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);

it('[WRK-FAIR] a call of one principal beside four servers of another that flood a slow log takes three times as long as alone at most', async () => {
  bench = await openBench(1);
  const appends: number[] = [];
  await bench.start({
    wrap: (log) => ({
      ...log,
      append: async (to, records) => {
        if (to.topic !== 'events') return log.append(to, records);
        const bytes = bytesOf(records);
        appends.push(bytes);
        const ms = COMMIT_MS + (bytes / MIB) * MIB_MS;
        await new Promise<void>((resolve) => bench.time.clock().setTimer(ms, resolve));
        return log.append(to, records);
      },
    }),
  });
  await bench.open('modest', MODEST);
  let id = 0;
  const slowest = async (): Promise<number> => {
    let most = 0;
    for (let count = 0; count < 10; count++) {
      const startedMs = bench.time.clock().monoMs();
      const { messages } = await bench.ended(await bench.call('modest', ++id, 'effect', { token: 't' }, MODEST));
      most = Math.max(most, bench.time.clock().monoMs() - startedMs);
      expect(textOf(messages[0])).toBe('effect t');
    }
    return most;
  };
  const alone = await slowest();
  const floods = [];
  for (const key of ['g1', 'g2', 'g3', 'g4']) {
    await bench.open(key, GREEDY);
    floods.push(await bench.call(key, 1, 'flood', { count: 300, bytes: 32 * KIB }, GREEDY));
  }
  await bench.time.advance(200);
  const before = appends.length;
  const beside = await slowest();
  expect(beside / alone).toBeLessThan(3);
  // Without these it would have been alone.
  expect(Math.min(...floods.map((at) => progressOf(bench.stream(`r${at}`).messages).length))).toBeLessThan(300);
  // A share of 128 KiB, and what each of them said last.
  expect(Math.max(...appends.slice(before))).toBeLessThan((128 + 4 * 33) * KIB);
  for (const at of floods) expect(progressOf((await bench.ended(at)).messages)).toHaveLength(300);
}, 60_000);
