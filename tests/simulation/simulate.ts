/**
 * Runs many seeds: `npm run simulate -- --seeds 10000`. Prints each failing seed with the command that replays it, what
 * is left of it when it is shrunk, and at the end the table of faults.
 */
import process from 'node:process';
import { optionsOrExit } from '../../infra/options/read-options.ts';
import { makePlan } from './src/draw-plan.ts';
import { replayCommand } from './src/run-seed.ts';
import { createSeedPool } from './src/seed-pool.ts';
import type { SeedReport } from './src/seed-report.ts';
import { renderCase, shrink } from './src/shrink.ts';
import type { Shrunk } from './src/shrink.ts';
import { planOptions, SIMULATE } from './src/simulate-options.ts';
import { renderTally } from './src/tally.ts';

/** Failing seeds that are shrunk: each takes up to some hundred runs. */
const MAX_SHRUNK = 3;
/** Seeds from one word of progress to the next. */
const PROGRESS_EVERY = 500;

const options = optionsOrExit(SIMULATE, process.argv.slice(2));
const planned = planOptions(options);
const startedMs = performance.now();
const reports: SeedReport[] = [];
const failed: SeedReport[] = [];
const pool = createSeedPool({ plan: planned, ...(options.jobs === null ? {} : { jobs: options.jobs }) });
try {
  await pool.run(
    Array.from({ length: options.seeds }, (_, index) => options.from + index),
    (report) => {
      reports.push(report);
      if (reports.length % PROGRESS_EVERY === 0)
        process.stderr.write(`${reports.length} seeds, ${failed.length} failed\n`);
      if (report.findings.length === 0) return;
      failed.push(report);
      const { seed, faults, findings } = report;
      process.stdout.write(`seed ${seed} fails (${faults.join(', ') || 'no faults'}); ${replayCommand(seed)}\n`);
      for (const { rule, what } of findings.slice(0, 5)) process.stdout.write(`  [${rule}] ${what}\n`);
    },
    () => options.stop && failed.length > 0,
  );
} finally {
  pool.stop();
}
if (options.shrink) for (const { seed } of failed.slice(0, MAX_SHRUNK)) await shrinkAloud(seed);
const seconds = (performance.now() - startedMs) / 1000;
const sum = (of: (report: SeedReport) => number): number => reports.reduce((total, report) => total + of(report), 0);
process.stdout.write(
  `\n${renderTally(reports)}\n\n${reports.length - failed.length} seeds passed, ${failed.length} failed: ${sum(({ calls }) => calls)} calls, ${sum(({ events }) => events)} events, ${seconds.toFixed(1)} s\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Whoever is impatient and interrupts it gets the shortest case so far. */
async function shrinkAloud(seed: number): Promise<void> {
  let best: Shrunk | null = null;
  const say = (): void => {
    if (best !== null)
      process.stdout.write(`\nseed ${seed} in short, after ${best.runs} runs:\n\n${renderCase(best)}\n`);
  };
  const onInterrupt = (): void => {
    say();
    process.exit(1);
  };
  process.once('SIGINT', onInterrupt);
  best = await shrink(makePlan(seed, planned), {
    onBest(found) {
      best = found;
      const { strikes, clients } = found.plan;
      process.stderr.write(`  ${found.runs} runs: ${strikes.length} strikes, ${clients.length} clients\n`);
    },
  });
  process.off('SIGINT', onInterrupt);
  say();
}
