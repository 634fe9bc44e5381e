/** Looks for a seed that fails in a build that is broken on purpose, and passes in ours. */
import type { Mutant } from './mutants.ts';
import type { PlanOptions } from './draw-plan.ts';
import { createSeedPool } from './seed-pool.ts';
import type { SeedReport } from './seed-report.ts';

export interface Caught {
  readonly seed: number;
  /** The promises that it broke. */
  readonly rules: readonly string[];
}

/** `null` if no seed up to `seeds` catches it. Rejects if an edit of the mutant does not apply. */
export async function catchMutant(mutant: Mutant, seeds: number, jobs: number): Promise<Caught | null> {
  const plan: PlanOptions = {
    ...(mutant.faults === undefined ? {} : { faults: mutant.faults }),
    ...(mutant.overrides === undefined ? {} : { overrides: mutant.overrides }),
  };
  const all = Array.from({ length: seeds }, (_, index) => index + 1);
  const order = mutant.seed === undefined ? all : [mutant.seed, ...all.filter((seed) => seed !== mutant.seed)];
  const broken = await firstFailing(order, { plan, mutant: mutant.name, jobs: mutant.seed === undefined ? jobs : 1 });
  if (broken === null) return null;
  // It would show nothing if it failed without the break as well.
  if ((await firstFailing([broken.seed], { plan, jobs: 1 })) !== null) return null;
  return { seed: broken.seed, rules: [...new Set(broken.findings.map(({ rule }) => rule))] };
}

async function firstFailing(
  seeds: readonly number[],
  options: Parameters<typeof createSeedPool>[0] & {},
): Promise<SeedReport | null> {
  const pool = createSeedPool(options);
  const failed: SeedReport[] = [];
  try {
    await pool.run(
      seeds,
      (report) => {
        if (report.findings.length > 0) failed.push(report);
      },
      () => failed.length > 0,
    );
  } finally {
    pool.stop();
  }
  return failed[0] ?? null;
}
