/** A process of the pool: runs each seed, or plan, that it is sent, and sends back what is to be kept of the run. */
import process from 'node:process';
import type { PlanOptions } from './src/draw-plan.ts';
import type { Plan } from './src/plan.ts';
import { runPlan, runSeed } from './src/run-seed.ts';
import { reportOf } from './src/seed-report.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as PlanOptions;

process.on('message', (wanted: number | Plan) => {
  const run = typeof wanted === 'number' ? runSeed(wanted, options) : runPlan(wanted);
  run.then(
    (outcome) => process.send?.({ report: reportOf(outcome) }),
    (error: unknown) =>
      process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
// Nobody is left to send seeds.
process.on('disconnect', () => process.exit(0));
