/** Every fault of the catalogue once, under 50 clients: nothing lost, repeated, run twice or hung. A few of them in every lane. */
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { StreamingCrowd } from './crowd/streaming-crowd.ts';
import { FAULTS } from './faults/catalogue.ts';
import { expectSurvived, startCrowd } from './under-crowd.ts';
import { startFaultWorld } from './world/fault-world.ts';
import type { FaultWorld } from './world/fault-world.ts';

/** What takes little and finds much. */
const QUICK = ['gateway killed', 'worker stopped', 'worker and brokers cut both ways'];
const SEED = 7;
const TEST_MS = 400_000;

/** broker-faults.cluster.test.ts has them, with more to say. */
const ELSEWHERE = ['broker killed', 'coordinator killed', 'broker paused'];

const chosen = FAULTS.filter(({ name }) =>
  process.env['DEEP'] === '1' ? !ELSEWHERE.includes(name) : QUICK.includes(name),
);

describe.skipIf(inject('kafkaCluster') === null)('faults under 50 streaming clients', () => {
  let world: FaultWorld;
  let crowd: StreamingCrowd;
  beforeAll(async () => {
    world = await startFaultWorld({ seed: SEED });
    crowd = await startCrowd(world);
  }, 300_000);
  afterAll(async () => {
    await world.stop();
  }, 60_000);

  // `for` gives the context too: a fault that this machine cannot have is skipped, and counted.
  it.for(chosen)(
    '[FLT-KEPT] [FLT-TOLD] $name: nothing lost, repeated, run twice or hung, and clients are told nothing but what is right',
    { timeout: TEST_MS },
    async (fault, { skip }) => {
      const why = fault.whyNot?.(world) ?? null;
      skip(why !== null, why ?? '');
      await expectSurvived(fault, world, crowd);
    },
  );

  it(
    '[FLT-KEPT] when all calls have ended, every message was heard and every call ran at most once',
    async () => {
      await crowd.finish();
      expect(crowd.findings()).toEqual([]);
    },
    TEST_MS,
  );
});
