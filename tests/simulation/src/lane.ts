/** The seeds of a lane, in groups of one test each, and what went wrong in a group. */
import process from 'node:process';
import { replayCommand, runSeed } from './run-seed.ts';

/** Seeds of the change lane, over all files; the deep lane runs ten times as many. */
const CHANGE_SEEDS = 240;
const DEEP_SEEDS = 2400;
const SEEDS_A_TEST = 20;

export interface SeedGroup {
  readonly name: string;
  readonly seeds: readonly number[];
}

/** @param share which of `shares` parts of the lane's seeds; files run side by side. `SEED` in the environment: that one alone. */
export function seedGroups(share: number, shares: number): readonly SeedGroup[] {
  const only = process.env['SEED'];
  const count = process.env['DEEP'] === '1' ? DEEP_SEEDS : CHANGE_SEEDS;
  const all = only === undefined ? Array.from({ length: count }, (_, index) => index + 1) : [Number(only)];
  const seeds = all.filter((seed) => seed % shares === share);
  const groups: SeedGroup[] = [];
  for (let at = 0; at < seeds.length; at += SEEDS_A_TEST) {
    const some = seeds.slice(at, at + SEEDS_A_TEST);
    groups.push({ name: `${some[0]} to ${some.at(-1)}`, seeds: some });
  }
  return groups.length === 0 ? [{ name: 'none here', seeds: [] }] : groups;
}

/** One paragraph a failing seed: its faults, the command that replays it, its findings. */
export async function failuresOf(seeds: readonly number[]): Promise<string> {
  const failures: string[] = [];
  for (const seed of seeds) {
    const { findings, plan } = await runSeed(seed);
    if (findings.length === 0) continue;
    const lines = findings.slice(0, 8).map(({ rule, what }) => `  [${rule}] ${what}`);
    failures.push([`seed ${seed} (${plan.faults.join(', ')}): ${replayCommand(seed)}`, ...lines].join('\n'));
  }
  return failures.join('\n');
}
