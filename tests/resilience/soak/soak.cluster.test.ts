/** Ten minutes of clients that come and go under random faults: nothing broken, and no process holds more at the end. */
import process from 'node:process';
import { createSeededRandom } from '@throughline/testkit';
import { COLLECTING } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { drawFaults } from '../chaos/draw-faults.ts';
import { startStreamingCrowd } from '../crowd/streaming-crowd.ts';
import type { StreamingCrowd } from '../crowd/streaming-crowd.ts';
import { FAULTS } from '../faults/catalogue.ts';
import { describeRun, runFaults } from '../faults/run-fault.ts';
import { CALL_DEADLINE_MS } from '../under-crowd.ts';
import { startFaultWorld } from '../world/fault-world.ts';
import type { FaultWorld } from '../world/fault-world.ts';
import { findGrowth, floorsOf } from './flatness.ts';
import type { Sample } from './flatness.ts';
import { sampleProcess } from './sample-process.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? 10);
const CLIENTS = 50;
/** Two calls each four seconds or so: a session lives for ten, which makes five new ones a second. */
const CALLS_PER_SESSION = 2;
const SAMPLE_MS = 5000;
/**
 * From the first half to the last quarter: 2.5 minutes of a run of ten at least, and 500 sessions or more. RSS: ever.
 * The connections of all clients may be at the other gateway for all of the first half, as the faults have it.
 */
const BOUNDS = {
  heapBytes: 8 * 1024 ** 2,
  externalBytes: 8 * 1024 ** 2,
  rssBytes: 512 * 1024 ** 2,
  handles: 20 + CLIENTS,
  descriptors: 20 + CLIENTS,
};
/** Filled within the first minute: what fills it later would look like growth. */
const GATEWAY_ARGS = ['--cache', '4MiB'];
/** A process that is killed would take what it leaks with it. */
const KILLS = new Set([
  'gateway killed',
  'worker killed',
  'all gateways gone',
  'all workers gone',
  'retention below live cursors',
]);

describe.skipIf(process.env['DEEP'] !== '1' || inject('kafkaCluster') === null)('soak', () => {
  let world: FaultWorld;
  let crowd: StreamingCrowd;
  const seed = Math.floor(Math.random() * 2 ** 31);
  beforeAll(async () => {
    world = await startFaultWorld({ seed, gatewayArgs: GATEWAY_ARGS, nodeOptions: COLLECTING });
    crowd = await startStreamingCrowd(
      CLIENTS,
      {
        ...{ url: world.url, steps: 20, intervalMs: 200 },
        ...{ callDeadlineMs: CALL_DEADLINE_MS, callsPerSession: CALLS_PER_SESSION },
      },
      world.runsFile,
    );
  }, 300_000);
  afterAll(() => world.stop(), 60_000);

  it(
    '[FLT-SOAK] under churn and random faults nothing breaks, and memory, handles and descriptors of every process are flat',
    { timeout: (MINUTES + 10) * 60_000 },
    async () => {
      process.stdout.write(`soak of ${MINUTES} minutes, seed ${seed}\n`);
      const { gateways, workers } = world.product;
      const parts = [...gateways, ...workers].map((part) => ({ part, samples: [] as Sample[] }));
      const timer = setInterval(() => {
        for (const { part, samples } of parts)
          void sampleProcess(part).then((sample) => sample !== null && samples.push(sample));
      }, SAMPLE_MS);
      try {
        const draws = drawFaults(
          FAULTS.filter(({ name, whyNot }) => !KILLS.has(name) && (whyNot?.(world) ?? null) === null),
          createSeededRandom(seed),
        );
        for (const until = performance.now() + MINUTES * 60_000; performance.now() < until;) {
          const run = await runFaults(draws.next().value, { world, crowd });
          process.stdout.write(`${describeRun(run)}\n`);
          expect(run.untold).toEqual([]);
        }
      } finally {
        clearInterval(timer);
      }
      await crowd.finish();
      expect(crowd.findings()).toEqual([]);
      for (const { part, samples } of parts) {
        const { heapBytes, externalBytes, rssBytes, handles, descriptors } = samples.at(-1)!;
        const floors = floorsOf(samples, 'heapBytes').map((bytes) => (bytes / 1e6).toFixed(0));
        process.stdout.write(
          `${part.role}: heap ${(heapBytes / 1e6).toFixed(0)} MB (through each eighth: ${floors.join(', ')}), buffers ${(externalBytes / 1e6).toFixed(0)} MB, RSS ${(rssBytes / 1e6).toFixed(0)} MB, ` +
            `${handles} handles, ${descriptors} descriptors after ${samples.length} samples\n`,
        );
        expect(part.isRunning()).toBe(true);
      }
      expect(parts.flatMap(({ part, samples }) => findGrowth(`${part.role} ${part.pid}`, samples, BOUNDS))).toEqual([]);
    },
  );
});
