/** Seeds that failed once, shrunk to what is left of them: each stays mended. SPEC: SIM-SHRINK. */
import { expect, it } from 'vitest';
import type { Plan } from './src/plan.ts';
import { runPlan } from './src/run-seed.ts';

it('[SIM-ONCE] [WRK-SLEPT] a worker that slept, and was replaced meanwhile, runs no call without effects before it knows', async () => {
  const plan: Plan = {
    seed: 968,
    partitions: 1,
    gateways: 3,
    workers: 3,
    activeMs: 4028,
    faultEveryMs: 1028.3477403223515,
    latency: { logMs: 10, networkMs: 0.5 },
    instanceFailure: 0,
    isProbed: false,
    gateway: { cacheBytes: 4194304, catchUpReaders: 1, keepAliveMs: 1000, refreshMs: 2000, drainMs: 200 },
    worker: { checkpointMs: 200, drainMs: 3000, maxRunning: 2, maxRunningPerSession: 32, unloadAfterMs: 300000 },
    faults: ['crash-at-append', 'worker-pause'],
    clients: [
      {
        version: '2025-03-26',
        servers: ['kept'],
        paceMs: 247.25079972296953,
        maxParallel: 5,
        postAgain: 1,
        cancel: 0.15,
        deleteSession: 0,
        oddResume: 0.3,
        forge: 0.05,
        slowRead: 0,
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
        steps: [
          { atMs: 442, draw: 3, do: 'call', tools: ['list'], isCancelled: false },
          { atMs: 4140, draw: 15, do: 'call', tools: ['lookup'], isCancelled: false },
        ],
      },
    ],
    strikes: [
      { atMs: 2153, fault: 'worker-pause', draw: 1 },
      { atMs: 3229, fault: 'crash-at-append', draw: 2 },
    ],
  };
  expect((await runPlan(plan)).findings).toEqual([]);
});

it('[SIM-ENDS] [WRK-MISSED] a worker from whom retention took the claim of its successor does not go on as owner', async () => {
  const plan: Plan = {
    seed: 109,
    partitions: 2,
    gateways: 3,
    workers: 3,
    activeMs: 6713.944299146533,
    faultEveryMs: 230.23959539132193,
    latency: { logMs: 0.5, networkMs: 0.5 },
    instanceFailure: 0,
    isProbed: true,
    gateway: { cacheBytes: 4096, catchUpReaders: 16, keepAliveMs: 1000, refreshMs: 300, drainMs: 200 },
    worker: { checkpointMs: 200, drainMs: 3000, maxRunning: 2, maxRunningPerSession: 2, unloadAfterMs: 500 },
    faults: ['retention-of-checkpoint', 'worker-crash', 'worker-pause'],
    clients: [
      {
        version: '2025-11-25',
        servers: ['kept'],
        paceMs: 194.42023182054982,
        maxParallel: 1,
        postAgain: 1,
        cancel: 0,
        deleteSession: 0,
        oddResume: 0.3,
        forge: 0,
        slowRead: 0.1,
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
        steps: [{ atMs: 3506, draw: 21, do: 'call', tools: ['ask'], isCancelled: false }],
      },
    ],
    strikes: [
      { atMs: 3303, fault: 'worker-pause', draw: 17 },
      { atMs: 5491, fault: 'worker-crash', draw: 26 },
      { atMs: 5652, fault: 'worker-pause', draw: 27 },
      { atMs: 5741, fault: 'retention-of-checkpoint', draw: 28 },
    ],
  };
  expect((await runPlan(plan)).findings).toEqual([]);
});

it('[SIM-ENDS] [WRK-LATE-CLAIM] a claim that comes into force when its maker has left the partition is released', async () => {
  const plan: Plan = {
    seed: 13106,
    partitions: 2,
    gateways: 2,
    workers: 2,
    activeMs: 8901.43318567425,
    faultEveryMs: 374.48872968088835,
    latency: { logMs: 40, networkMs: 30 },
    instanceFailure: 0,
    isProbed: false,
    gateway: { cacheBytes: 4194304, catchUpReaders: 16, keepAliveMs: 200, refreshMs: 2000, drainMs: 0 },
    worker: { checkpointMs: 20, drainMs: 3000, maxRunning: 2, maxRunningPerSession: 32, unloadAfterMs: 300000 },
    faults: ['crash-at-append', 'two-owners', 'append-refused'],
    clients: [
      {
        version: '2025-11-25',
        servers: ['kept', 'fleeting'],
        paceMs: 174.71813989104703,
        maxParallel: 5,
        postAgain: 1,
        cancel: 0,
        deleteSession: 0,
        oddResume: 0.3,
        forge: 0,
        slowRead: 0.1,
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
        steps: [
          { atMs: 184, draw: 2, do: 'call', tools: ['upsert'], isCancelled: false },
          { atMs: 452, draw: 3, do: 'call', tools: ['upsert'], isCancelled: false },
          { atMs: 3327, draw: 20, do: 'call', tools: ['lookup'], isCancelled: false },
          { atMs: 3489, draw: 21, do: 'call', tools: ['echo'], isCancelled: false },
          { atMs: 3524, draw: 22, do: 'call', tools: ['ask'], isCancelled: false },
          { atMs: 7588, draw: 44, do: 'call', tools: ['echo'], isCancelled: false },
          { atMs: 7756, draw: 45, do: 'call', tools: ['upsert'], isCancelled: false },
          { atMs: 8070, draw: 46, do: 'call', tools: ['lookup'], isCancelled: false },
          { atMs: 8358, draw: 47, do: 'call', tools: ['echo'], isCancelled: false },
          { atMs: 8520, draw: 48, do: 'call', tools: ['countdown'], isCancelled: false },
        ],
      },
    ],
    strikes: [
      { atMs: 1212, fault: 'append-refused', draw: 3 },
      { atMs: 7274, fault: 'crash-at-append', draw: 18 },
      { atMs: 7574, fault: 'two-owners', draw: 19 },
    ],
  };
  expect((await runPlan(plan)).findings).toEqual([]);
});
