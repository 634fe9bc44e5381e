/** Draws the plan of a seed. */
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';
import type { ClientHabits, ClientStep, Plan, ProducerStep, Strike } from './plan.ts';

export interface PlanOptions {
  /** Replaces what the seed would draw. */
  readonly faults?: readonly FaultName[];
  readonly overrides?: Partial<Omit<Plan, 'seed' | 'faults' | 'strikes'>>;
}

export function makePlan(seed: number, options: PlanOptions = {}): Plan {
  const chance = createChance(seed, 'plan');
  const habits = Array.from({ length: chance.whole(1, 4) }, () => makeHabits(chance));
  const all = Object.keys(FAULTS) as FaultName[];
  const names = all.filter((name) => !('breaks' in FAULTS[name]) && !('apart' in FAULTS[name]));
  // By chance of their own: the other draws of a seed stay what they are.
  const apart = createChance(seed, 'breaks');
  const breaks = apart.happens(0.15) ? [apart.pick(all.filter((name) => 'breaks' in FAULTS[name]))] : [];
  const others = createChance(seed, 'apart');
  const extra = all.filter((name) => 'apart' in FAULTS[name] && others.happens(0.1));
  // Some runs without any fault, some with one kind, most with several.
  const kinds = chance.weighted({ none: 1, one: 4, few: 8, many: 4 });
  const share = { none: 0, one: 0, few: 0.3, many: 0.7 }[kinds];
  const drawn = kinds === 'one' ? [chance.pick(names)] : names.filter(() => chance.happens(share));
  const faults = options.faults ?? [...drawn, ...breaks, ...extra];
  const drawnPlan = {
    seed,
    partitions: chance.whole(1, 3),
    gateways: chance.whole(1, 3),
    workers: chance.whole(1, 3),
    activeMs: chance.between(3000, 9000),
    faultEveryMs: chance.between(150, 1500),
    latency: { logMs: chance.pick([0.5, 2, 10, 40]), networkMs: chance.pick([0.5, 5, 30]) },
    instanceFailure: chance.happens(0.2) ? 0.05 : 0,
    isProbed: chance.happens(0.5),
    gateway: {
      cacheBytes: chance.pick([1024, 4096, 32_768, 4_194_304]),
      catchUpReaders: chance.pick([1, 2, 16]),
      keepAliveMs: chance.pick([200, 1000]),
      refreshMs: chance.pick([300, 2000]),
      drainMs: chance.pick([0, 200, 1000]),
    },
    worker: {
      checkpointMs: chance.pick([20, 200, 1000]),
      drainMs: chance.pick([0, 300, 3000]),
      maxRunning: chance.pick([2, 256]),
      maxRunningPerSession: chance.pick([1, 2, 32]),
      unloadAfterMs: chance.pick([100, 500, 300_000]),
    },
    ...options.overrides,
    faults,
  };
  return {
    ...drawnPlan,
    clients:
      options.overrides?.clients ??
      habits.map((each, index) => ({ ...each, steps: drawSteps(each, createChance(seed, `steps ${index}`)) })),
    strikes: drawStrikes(drawnPlan, createChance(seed, 'strikes')),
    // Where the faults are chosen, as for mutants, a seed stays what it was.
    says: options.overrides?.says ?? (options.faults === undefined ? drawSays(createChance(seed, 'producer')) : []),
  };
}

/** In a part of the runs: others are as they were before there were producers. */
function drawSays(chance: Chance): readonly ProducerStep[] {
  const says: ProducerStep[] = [];
  if (!chance.happens(0.25)) return says;
  const paceMs = chance.between(20, 400);
  for (let atMs = chance.between(0, 1000); atMs < LONGEST_MS; atMs += chance.between(0, 2 * paceMs))
    says.push({ atMs: Math.round(atMs), draw: says.length, name: `m${chance.whole(0, 7)}` });
  return says;
}

/** Longer than any client works: the longest time of faults, and what goes before it. */
const LONGEST_MS = 11_000;

function drawSteps(habits: ClientHabits, chance: Chance): readonly ClientStep[] {
  const steps: ClientStep[] = [];
  const canBatch = habits.version === '2025-03-26';
  for (let atMs = 0; atMs < LONGEST_MS; atMs += chance.between(0, 2 * habits.paceMs)) {
    const when = { atMs: Math.round(atMs), draw: steps.length };
    if (chance.happens(habits.deleteSession)) steps.push({ ...when, do: 'delete' });
    else if (chance.happens(habits.forge)) steps.push({ ...when, do: 'forge' });
    else {
      const size = canBatch && chance.happens(0.2) ? chance.whole(2, 3) : 1;
      const tools = Array.from({ length: size }, () => chance.weighted(habits.tools));
      steps.push({ ...when, do: 'call', tools, isCancelled: size === 1 && chance.happens(habits.cancel) });
    }
  }
  return steps;
}

function drawStrikes(plan: Pick<Plan, 'activeMs' | 'faultEveryMs' | 'faults'>, chance: Chance): readonly Strike[] {
  const strikes: Strike[] = [];
  if (plan.faults.length === 0) return strikes;
  for (let atMs = 0; ;) {
    atMs += chance.between(0, 2 * plan.faultEveryMs);
    if (atMs >= plan.activeMs) return strikes;
    strikes.push({ atMs: Math.round(atMs), fault: chance.pick(plan.faults), draw: strikes.length });
  }
}

function makeHabits(chance: Chance): ClientHabits {
  return {
    version: chance.pick(['2025-03-26', '2025-06-18', '2025-11-25', '2025-11-25', '2025-11-25']),
    servers: chance.pick([['kept'], ['kept'], ['kept', 'fleeting']]),
    paceMs: chance.between(20, 250),
    maxParallel: chance.whole(1, 5),
    postAgain: chance.pick([0, 0.5, 1, 1]),
    cancel: chance.pick([0, 0, 0.15]),
    deleteSession: chance.pick([0, 0, 0, 0.02]),
    oddResume: chance.pick([0, 0, 0.3]),
    forge: chance.pick([0, 0, 0.05]),
    slowRead: chance.pick([0, 0, 0.1]),
    tools: {
      echo: 3,
      countdown: 4,
      effect: 3,
      lookup: 2,
      upsert: 2,
      ask: 1,
      interview: 1.5,
      wander: 0.4,
      shout: 1,
      poll: 1,
      fail: 0.3,
      list: 0.6,
      ping: 0.3,
    },
  };
}
