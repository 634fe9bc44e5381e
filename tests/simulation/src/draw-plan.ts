/** Draws the plan of a seed. */
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';
import type { Plan } from './plan.ts';
import type { ClientHabits } from './sim-client.ts';

export interface PlanOptions {
  /** Replaces what the seed would draw. */
  readonly faults?: readonly FaultName[];
  readonly overrides?: Partial<Omit<Plan, 'seed' | 'faults'>>;
}

export function makePlan(seed: number, options: PlanOptions = {}): Plan {
  const chance = createChance(seed, 'plan');
  const clients = Array.from({ length: chance.whole(1, 4) }, () => makeHabits(chance));
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
  return {
    seed,
    partitions: chance.whole(1, 3),
    gateways: chance.whole(1, 3),
    workers: chance.whole(1, 3),
    clients,
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
    faults: options.faults ?? [...drawn, ...breaks, ...extra],
  };
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
      ask: 1.5,
      shout: 1,
      poll: 1,
      fail: 0.3,
      list: 0.6,
      ping: 0.3,
    },
  };
}
