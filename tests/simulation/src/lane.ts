/** The seeds of a lane as tests: a failing one is named with its findings and the command that replays it. */
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { replayCommand, runSeed } from './run-seed.ts';

/** Seeds of the change lane, over all files; the deep lane runs ten times as many. */
const CHANGE_SEEDS = 240;
const DEEP_SEEDS = 2400;
const SEEDS_A_TEST = 20;

/** @param share which of `shares` parts of the lane's seeds; files run side by side. */
export function describeSeeds(share: number, shares: number): void {
  const only = process.env['SEED'];
  const all =
    only === undefined
      ? Array.from({ length: process.env['DEEP'] === '1' ? DEEP_SEEDS : CHANGE_SEEDS }, (_, index) => index + 1)
      : [Number(only)];
  const seeds = all.filter((seed) => seed % shares === share);
  describe.skipIf(seeds.length === 0)('a simulated run under faults', () => {
    for (let at = 0; at < seeds.length; at += SEEDS_A_TEST) {
      const some = seeds.slice(at, at + SEEDS_A_TEST);
      it(
        `[SIM-NO-GAP][SIM-NO-REPEAT][SIM-CHAIN][SIM-SAME][SIM-LOG][SIM-SESSION][SIM-REFUSED][SIM-ENDS][SIM-ONCE][SIM-ANSWER][SIM-CAUSE][SIM-LIVE] keeps every promise with each of the seeds ${some[0]} to ${some.at(-1)}`,
        { timeout: 300_000 },
        async () => {
          const failures: string[] = [];
          for (const seed of some) {
            const { findings, plan } = await runSeed(seed);
            if (findings.length === 0) continue;
            const lines = findings.slice(0, 8).map(({ rule, what }) => `  [${rule}] ${what}`);
            failures.push([`seed ${seed} (${plan.faults.join(', ')}): ${replayCommand(seed)}`, ...lines].join('\n'));
          }
          expect(failures.join('\n'), 'failing seeds').toBe('');
        },
      );
    }
  });
}
