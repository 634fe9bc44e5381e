import { describe, expect, it } from 'vitest';
import { makePlan } from './src/draw-plan.ts';
import type { Plan } from './src/plan.ts';
import { runPlan } from './src/run-seed.ts';
import { MUTANTS } from './src/mutants.ts';
import { createSeedPool } from './src/seed-pool.ts';
import { renderCase, shrink } from './src/shrink.ts';
import type { Shrunk } from './src/shrink.ts';

/** Broken by one kind of strike while a client calls one kind of tool: all else is noise. */
const breaks = (plan: Plan) => {
  const strikes = plan.strikes.some(({ fault }) => fault === 'connection-cut');
  const calls = plan.clients.some(({ steps }) =>
    steps.some((step) => step.do === 'call' && step.tools.includes('ask')),
  );
  const noise = plan.strikes.length > 3 ? [{ rule: 'SIM-OTHER', what: 'noise' }] : [];
  return Promise.resolve(strikes && calls ? [{ rule: 'SIM-ONCE', what: 'ran twice' }, ...noise] : noise);
};

/** A seed whose plan has both. */
async function noisyPlan(): Promise<Plan> {
  for (let seed = 1; seed < 100; seed++) {
    const plan = makePlan(seed, { faults: ['connection-cut', 'half-open', 'gateway-crash'] });
    const [first] = await breaks(plan);
    if (first?.rule === 'SIM-ONCE' && plan.strikes.length > 3) return plan;
  }
  throw new Error('no seed below 100 has both');
}

describe('a plan that breaks a promise', () => {
  it('[SIM-SHRINK] is shrunk to the strikes, clients and calls without which the same promise is kept', async () => {
    const plan = await noisyPlan();
    const shrunk = await shrink(plan, { breaks });
    expect(shrunk?.rule).toBe('SIM-ONCE');
    expect(shrunk?.plan.strikes.map(({ fault }) => fault)).toEqual(['connection-cut']);
    expect(shrunk?.plan.faults).toEqual(['connection-cut']);
    expect(shrunk?.plan.clients).toHaveLength(1);
    expect(shrunk?.plan.clients[0]?.steps).toHaveLength(1);
    expect([shrunk?.plan.gateways, shrunk?.plan.workers, shrunk?.plan.partitions]).toEqual([1, 1, 1]);
  });

  it('[SIM-SHRINK] ends after the runs that it may take, with the smallest plan so far', async () => {
    const plan = await noisyPlan();
    const shrunk = await shrink(plan, { breaks, maxRuns: 3 });
    expect(shrunk?.runs).toBe(3);
    expect((await breaks(shrunk!.plan))[0]?.rule).toBe('SIM-ONCE');
  });

  it('[SIM-SHRINK] ends when its time is over, and has told the smallest plan so far', async () => {
    const plan = await noisyPlan();
    let nowMs = 0;
    const told: Shrunk[] = [];
    const shrunk = await shrink(plan, {
      maxMs: 10_000,
      nowMs: () => (nowMs += 1000),
      breaks,
      onBest: (best) => told.push(best),
    });
    expect(shrunk?.runs).toBeLessThanOrEqual(10);
    expect(told.length).toBeGreaterThan(0);
    expect(told.at(-1)?.plan).toEqual(shrunk?.plan);
  });

  it(
    '[SIM-SHRINK] of a build that is broken on purpose fails by the same rule with fewer strikes and clients',
    { timeout: 600_000 },
    async () => {
      const name = 'repetitions-run';
      const mutant = MUTANTS.find((each) => each.name === name)!;
      const plan = makePlan(mutant.seed!, { faults: mutant.faults! });
      const pool = createSeedPool({ jobs: 1, mutant: name });
      try {
        const rule = (await pool.runPlan(plan)).findings[0]?.rule;
        const shrunk = await shrink(plan, {
          maxRuns: 60,
          breaks: async (each) => (await pool.runPlan(each)).findings,
        });
        expect(rule).toBeDefined();
        expect(shrunk?.rule).toBe(rule);
        expect(shrunk!.plan.strikes.length).toBeLessThan(plan.strikes.length);
        expect(shrunk!.plan.clients.length).toBeLessThan(plan.clients.length);
        const again = await pool.runPlan(JSON.parse(JSON.stringify(shrunk!.plan)) as Plan);
        expect(again.findings.map(({ rule }) => rule)).toContain(rule);
        // The product as it is keeps its promise in the same case.
        expect((await runPlan(shrunk!.plan)).findings).toEqual([]);
      } finally {
        pool.stop();
      }
    },
  );

  it('[SIM-SHRINK] is no plan that breaks nothing', async () => {
    expect(await shrink(makePlan(1), { breaks: () => Promise.resolve([]) })).toBeNull();
  });

  it('[SIM-SHRINK] is printed as a case whose literal is the plan itself', async () => {
    const plan = makePlan(3);
    const text = renderCase({ plan, rule: 'SIM-ONCE', what: 'ran twice', runs: 1 });
    expect(text).toContain("it('[SIM-ONCE] seed 3");
    const literal = /const plan: Plan = (.*);/.exec(text)?.[1] ?? '';
    expect(JSON.parse(literal)).toEqual(JSON.parse(JSON.stringify(plan)));
    const told = JSON.parse(literal) as Plan;
    expect((await runPlan(told)).hash).toBe((await runPlan(plan)).hash);
  });

  it('[SIM-SHRINK] loses a strike without a change of what the others do', async () => {
    const plan = makePlan(3, { faults: ['clock-jump', 'connection-cut'], overrides: { faultEveryMs: 300 } });
    const didOf = async (each: Plan): Promise<string[]> =>
      (await runPlan(each, { keepTrace: true })).lines
        .filter((line) => line.includes(' fault clock-jump'))
        .map((line) => line.split(' jumps by ')[1] ?? '');
    const all = await didOf(plan);
    expect(all.length).toBeGreaterThan(1);
    const jumps = plan.strikes.filter(({ fault }) => fault === 'clock-jump');
    expect(await didOf({ ...plan, strikes: jumps })).toEqual(all);
  });
});
