/** The seeds of a lane, in groups of one test each, and what went wrong in a group. */
import process from 'node:process';
import { replayCommand } from './run-seed.ts';
import type { SeedPool } from './seed-pool.ts';
import type { SeedReport } from './seed-report.ts';

/** Seeds of the change lane, over all files: always the same. */
const CHANGE_SEEDS = 500;
const DEEP_SEEDS = 20_000;
const GROUPS_A_FILE = 10;

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
  const size = Math.ceil(seeds.length / GROUPS_A_FILE);
  const groups: SeedGroup[] = [];
  for (let at = 0; at < seeds.length; at += size) {
    const some = seeds.slice(at, at + size);
    groups.push({ name: `${some[0]} to ${some.at(-1)}`, seeds: some });
  }
  return groups.length === 0 ? [{ name: 'none here', seeds: [] }] : groups;
}

/** One paragraph a failing seed: its faults, the commands that replay and shrink it, its findings. */
export async function failuresOf(pool: SeedPool, seeds: readonly number[]): Promise<string> {
  const failures: string[] = [];
  await pool.run(seeds, ({ seed, findings, faults }: SeedReport) => {
    if (findings.length === 0) return;
    const lines = findings.slice(0, 8).map(({ rule, what }) => `  [${rule}] ${what}`);
    const shrinking = `npm run simulate -- --seeds 1 --from ${seed} --shrink`;
    failures.push([`seed ${seed} (${faults.join(', ')}): ${replayCommand(seed)}; ${shrinking}`, ...lines].join('\n'));
  });
  return failures.join('\n');
}
