/**
 * Runs seeds in processes of their own, as many at once as there are cores. Plain Node, not the test runner: there the
 * same seed takes half as long again.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import type { PlanOptions } from './draw-plan.ts';
import type { Plan } from './plan.ts';
import type { SeedReport } from './seed-report.ts';

export interface SeedPool {
  /** Reports in the order of their coming. `isEnough` is asked after each: no seed is begun after it said yes. */
  run(seeds: readonly number[], onReport: (report: SeedReport) => void, isEnough?: () => boolean): Promise<void>;
  /** Runs what is left of a seed. Not beside {@link run}. */
  runPlan(plan: Plan): Promise<SeedReport>;
  stop(): void;
}

export interface SeedPoolOptions {
  /** Default: one a core. */
  readonly jobs?: number;
  readonly plan?: PlanOptions;
  /** Name of a build that is broken on purpose. Default: the product as it is. */
  readonly mutant?: string;
}

const WORKER = path.join(import.meta.dirname, '../seed-worker.ts');
const MUTATE = path.join(import.meta.dirname, '../mutate.ts');
/** One collector thread a process: the other cores have seeds of their own. */
const FLAGS = ['--conditions=@throughline/source', '--max-semi-space-size=32', '--single-threaded-gc'];

export function createSeedPool({ jobs = availableParallelism(), plan = {}, mutant }: SeedPoolOptions = {}): SeedPool {
  const children = Array.from({ length: jobs }, () =>
    fork(WORKER, [JSON.stringify(plan)], {
      execArgv: mutant === undefined ? FLAGS : [...FLAGS, '--import', MUTATE],
      env: { ...process.env, ...(mutant === undefined ? {} : { MUTANT: mutant }) },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  );
  return {
    async run(seeds, onReport, isEnough = () => false) {
      let next = 0;
      const serve = async (child: ChildProcess): Promise<void> => {
        for (;;) {
          const seed = isEnough() ? undefined : seeds[next++];
          if (seed === undefined) return;
          onReport(await ask(child, seed));
        }
      };
      await Promise.all(children.map(serve));
    },
    runPlan(plan) {
      const [child] = children;
      return child === undefined ? Promise.reject(new Error('the pool has no process')) : ask(child, plan);
    },
    stop() {
      for (const child of children) child.kill();
    },
  };
}

/** Rejects if the process ends before it has answered. A run is bounded by its virtual time, so there is no other end. */
function ask(child: ChildProcess, wanted: number | Plan): Promise<SeedReport> {
  const seed = typeof wanted === 'number' ? wanted : wanted.seed;
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit);
      const { report, failure } = message as { report?: SeedReport; failure?: string };
      if (report === undefined) reject(new Error(`seed ${seed}: ${failure ?? 'no report'}`));
      else resolve(report);
    };
    const onExit = (code: number | null): void => {
      child.off('message', onMessage);
      reject(new Error(`seed ${seed}: its process ended with ${code}`));
    };
    child.once('message', onMessage);
    child.once('exit', onExit);
    child.send(wanted);
  });
}
