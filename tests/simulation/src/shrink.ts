/** Makes of a plan that breaks a promise a short one that still breaks it: without the parts that do not matter. */
import type { Plan } from './plan.ts';
import { runPlan } from './run-seed.ts';

export interface Shrunk {
  readonly plan: Plan;
  /** The promise that it breaks, as the plan that was given did. */
  readonly rule: string;
  /** What the checker says of it now. */
  readonly what: string;
  /** Runs that it took. */
  readonly runs: number;
}

export interface ShrinkOptions {
  /** Default 400. */
  readonly maxRuns?: number;
  /** Real milliseconds after which no further run is begun. Default 300,000. */
  readonly maxMs?: number;
  readonly nowMs?: () => number;
  /** Hears of each smaller case as it is found, so that whoever is stopped meanwhile has it. */
  onBest?(best: Shrunk): void;
  /** What a plan breaks; replaced in tests. Default: what the checker finds in its run. */
  breaks?(plan: Plan): Promise<readonly { readonly rule: string; readonly what: string }[]>;
}

/** How a plan can be made smaller, from the coarsest to the finest. Pure. */
export function* smallerPlans(plan: Plan): Generator<Plan> {
  for (const index of plan.clients.keys())
    if (plan.clients.length > 1) yield { ...plan, clients: plan.clients.filter((_, at) => at !== index) };
  for (const strikes of smallerLists(plan.strikes)) yield withStrikes(plan, strikes);
  for (const [index, client] of plan.clients.entries())
    for (const steps of smallerLists(client.steps))
      yield { ...plan, clients: plan.clients.map((each, at) => (at === index ? { ...client, steps } : each)) };
  for (const says of smallerLists(plan.says ?? [])) yield { ...plan, says };
  if (plan.faults.some((name) => !plan.strikes.some(({ fault }) => fault === name)))
    yield withStrikes(plan, plan.strikes);
  for (const field of ['workers', 'gateways', 'partitions'] as const)
    if (plan[field] > 1) yield { ...plan, [field]: plan[field] - 1 };
  if (plan.instanceFailure > 0) yield { ...plan, instanceFailure: 0 };
  const lastMs = Math.max(0, ...plan.strikes.map(({ atMs }) => atMs));
  if (plan.activeMs > lastMs + 1000) yield { ...plan, activeMs: lastMs + Math.round((plan.activeMs - lastMs) / 2) };
}

/** Parts of a list: first without large pieces of it, then without each single item. */
function* smallerLists<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let size = list.length; size >= 1; size = Math.floor(size / 2))
    for (let at = 0; at < list.length; at += size) yield [...list.slice(0, at), ...list.slice(at + size)];
}

/** Only what still strikes may explain anything. */
function withStrikes(plan: Plan, strikes: Plan['strikes']): Plan {
  const names = new Set(strikes.map(({ fault }) => fault));
  return { ...plan, strikes, faults: plan.faults.filter((name) => names.has(name)) };
}

/** `null` if the plan breaks nothing. Each step keeps the first smaller plan that breaks the same promise. */
export async function shrink(plan: Plan, options: ShrinkOptions = {}): Promise<Shrunk | null> {
  const { maxRuns = 400, maxMs = 300_000, nowMs = () => performance.now() } = options;
  const lastMs = nowMs() + maxMs;
  const breaks = options.breaks ?? (async (each: Plan) => (await runPlan(each)).findings);
  let runs = 1;
  const [first] = await breaks(plan);
  if (first === undefined) return null;
  const { rule } = first;
  let [best, what] = [plan, first.what];
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const candidate of smallerPlans(best)) {
      if (runs >= maxRuns || nowMs() >= lastMs) return { plan: best, rule, what, runs };
      runs++;
      const same = (await breaks(candidate)).find((finding) => finding.rule === rule);
      if (same === undefined) continue;
      [best, what, isSmaller] = [candidate, same.what, true];
      options.onBest?.({ plan: best, rule, what, runs });
      break;
    }
  }
  return { plan: best, rule, what, runs };
}

/** The case as a person pastes it into `found-defects.test.ts`. */
export function renderCase({ plan, rule, what }: Shrunk): string {
  const comment = what.replaceAll('*/', '* /').split('\n')[0]?.slice(0, 200) ?? '';
  return [
    `  it('[${rule}] seed ${plan.seed}, shrunk: say here what was wrong', async () => {`,
    `    // ${comment}`,
    `    const plan: Plan = ${JSON.stringify(plan)};`,
    '    expect((await runPlan(plan)).findings).toEqual([]);',
    '  });',
  ].join('\n');
}
