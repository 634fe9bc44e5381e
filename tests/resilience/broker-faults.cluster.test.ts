/** What clients notice when brokers fail under two gateways and two workers: nothing but a silence. */
import { setTimeout as pause } from 'node:timers/promises';
import type { KafkaBroker } from '@throughline/testkit/kafka';
import { RawClient, waitUntil, within } from '@throughline/testkit/processes';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { StreamingCrowd } from './crowd/streaming-crowd.ts';
import {
  ALL_BROKERS_GONE,
  BROKER_KILLED,
  BROKER_PAUSED,
  CLUSTER_RESTARTED,
  COORDINATOR_KILLED,
  OUTAGE_MS,
} from './faults/brokers.ts';
import type { Fault } from './faults/fault.ts';
import { expectSurvived, startCrowd } from './under-crowd.ts';
import { startFaultWorld } from './world/fault-world.ts';
import type { FaultWorld } from './world/fault-world.ts';

/** From the end of a fault on, until everybody is served again. */
const RECOVERY_MS = 60_000;
const TEST_MS = 360_000;
const START_MS = 300_000;
/** How long gateways wait for an ack; by default. */
const APPEND_MS = 20_000;
const SEED = 11;

let world: FaultWorld;
let crowd: StreamingCrowd;

const onAll = (what: (broker: KafkaBroker) => Promise<void>): Promise<unknown> =>
  Promise.all(world.kafka.members.map(what));

/** Resolves when all calls have ended: with nothing lost, repeated, run twice or hung. */
async function finish(): Promise<void> {
  await world.heal();
  await crowd.finish();
  expect(crowd.findings()).toEqual([]);
}

describe.skipIf(inject('kafkaCluster') === null)('brokers that fail', () => {
  describe('under 50 streaming clients', () => {
    beforeAll(async () => {
      world = await startFaultWorld({ seed: SEED });
    }, START_MS);
    afterAll(() => world.stop(), 60_000);
    beforeEach(async () => {
      crowd = await startCrowd(world);
    }, START_MS);
    afterEach(() => finish(), START_MS);

    it(
      '[BRK-KILL] one broker of three is killed: 0 messages lost, 0 repeated, 0 calls hang, and no call loses its owner',
      async () => {
        const { counts } = await expectSurvived(BROKER_KILLED, world, crowd);
        expect([counts.ownerLost, counts.sessionsEnded]).toEqual([0, 0]);
      },
      TEST_MS,
    );

    it(
      '[BRK-KILL] the broker that keeps the group of the workers is killed: the same',
      async () => {
        const { counts } = await expectSurvived(COORDINATOR_KILLED, world, crowd);
        expect([counts.ownerLost, counts.sessionsEnded]).toEqual([0, 0]);
      },
      TEST_MS,
    );

    it(
      '[BRK-LEADERS] a broker is stopped in order and started again, and its leaders move back to it: the same',
      async () => {
        const restarted: Fault = {
          name: 'broker restarted',
          does: 'A broker is stopped in order, started, and made leader again.',
          mayTell: [],
          async run() {
            await world.kafka.members[0]?.restart();
            // It has to have caught up before.
            await world.topics.electPreferred();
          },
        };
        const { counts } = await expectSurvived(restarted, world, crowd);
        expect([counts.ownerLost, counts.sessionsEnded]).toEqual([0, 0]);
      },
      TEST_MS,
    );

    it(
      '[BRK-PAUSE] a broker stands still for 15 s with its sockets open: the same, but for calls that may be told that their owner was lost',
      async () => {
        const { counts } = await expectSurvived(BROKER_PAUSED, world, crowd);
        expect(counts.sessionsEnded).toBe(0);
      },
      TEST_MS,
    );

    it(
      '[BRK-RESTORE] an outage that is longer than --append-timeout ends no session of a restore server: its running call is told whether it may have run',
      async () => {
        await crowd.finish();
        const client = await RawClient.connect(world.url);
        const call = await client.callTool(world.url, 'recorded_countdown', {
          call: 'long',
          from: 1000,
          intervalMs: 100,
        });
        await call.until('a step', ({ data }) => data.includes('"progress":3,'));
        await onAll((member) => member.kill());
        await pause(APPEND_MS + 5000);
        await onAll((member) => member.start());
        await within('the call to end', call.closed, RECOVERY_MS);
        expect(JSON.parse(call.events().at(-1)?.data ?? '{}')).toMatchObject({
          error: { data: { code: 'OWNER_LOST', mayHaveRun: true } },
        });
        const again = await waitUntil(
          'an answer',
          async () => {
            const answer = await client.callTool(world.url, 'recorded_countdown', {
              call: 'next',
              from: 1,
              intervalMs: 1,
            });
            return answer.status === 200 ? answer : null;
          },
          RECOVERY_MS,
        );
        await again.until('the result', ({ data }) => data.includes('"result"'), RECOVERY_MS);
      },
      TEST_MS,
    );
  });

  describe('all of them, under workers that wait for longer', () => {
    beforeAll(async () => {
      world = await startFaultWorld({ seed: SEED, workerArgs: ['--append-timeout', '120s'] });
    }, START_MS);
    afterAll(() => world.stop(), 60_000);
    beforeEach(async () => {
      crowd = await startCrowd(world);
    }, START_MS);
    afterEach(() => finish(), START_MS);

    it(
      '[BRK-OUTAGE] for 20 s: open streams stay open on keepalives, a POST gets 503 with Retry-After in time, and afterwards all goes on: 0 lost, 0 repeated, 0 hung',
      async () => {
        const idle = await RawClient.connect(world.url);
        const watched: Fault = {
          ...ALL_BROKERS_GONE,
          async run(run) {
            const alive = crowd.clients.map((client) => client.aliveOn());
            const during = async (): Promise<void> => {
              const startedAt = performance.now();
              const refused = await idle.callTool(world.url, 'tell', { call: 'early', text: 'told://early' });
              expect(performance.now() - startedAt).toBeLessThan(APPEND_MS);
              expect(refused.status, await refused.text()).toBe(503);
              expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
              await pause(Math.max(0, OUTAGE_MS - 2000 - (performance.now() - startedAt)));
              for (const [index, client] of crowd.clients.entries())
                expect(client.aliveOn()).toBeGreaterThan((alive[index] ?? 0) + OUTAGE_MS / 2000 - 2);
            };
            await Promise.all([ALL_BROKERS_GONE.run(run), pause(1000).then(during)]);
          },
        };
        const { counts } = await expectSurvived(watched, world, crowd);
        expect([counts.ownerLost, counts.sessionsEnded, counts.relistened]).toEqual([0, 0, 0]);
      },
      TEST_MS,
    );

    it(
      '[BRK-RESTART] all brokers are stopped in order and started again: 0 lost, 0 repeated, 0 hung',
      async () => {
        const { counts } = await expectSurvived(CLUSTER_RESTARTED, world, crowd);
        expect([counts.ownerLost, counts.sessionsEnded]).toEqual([0, 0]);
      },
      TEST_MS,
    );
  });
});
