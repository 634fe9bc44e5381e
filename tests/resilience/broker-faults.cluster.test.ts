/** What clients notice when brokers fail under two gateways and two workers: nothing but a silence. */
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { startCluster as startKafkaCluster } from '@throughline/testkit/kafka';
import type { KafkaBroker, KafkaCluster } from '@throughline/testkit/kafka';
import {
  makeKafkaPlace,
  RawClient,
  startBalancer,
  startCluster,
  waitUntil,
  within,
} from '@throughline/testkit/processes';
import type { Balancer, Cluster } from '@throughline/testkit/processes';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { SERVER_V2 } from '../e2e/fixtures/paths.ts';
import { showLogsOnFailure } from '../e2e/show-logs.ts';
import { startStreamingCrowd } from './streaming-crowd.ts';
import type { StreamingCrowd } from './streaming-crowd.ts';

const CLIENTS = 50;
const PAUSE_MS = 15_000;
const OUTAGE_MS = 20_000;
/** From the end of a fault on, until everybody is served again. */
const RECOVERY_MS = 60_000;
/** Brokers of a test are started again within this. */
const START_MS = 60_000;
const TEST_MS = 360_000;
/** Of the group; by default. */
const LEASE_MS = 8000;
/** How long gateways wait for an ack; by default. */
const APPEND_MS = 20_000;

let kafka: KafkaCluster;
let cluster: Cluster;
let balancer: Balancer;
let crowd: StreamingCrowd;

async function startProduct(...workerArgs: readonly string[]): Promise<void> {
  cluster = await startCluster({
    log: makeKafkaPlace({ brokers: kafka.brokers, replication: 3, partitions: 6, leaseMs: LEASE_MS }),
    gatewayArgs: ['--keep-alive', '1s'],
    workerArgs: ['--module', SERVER_V2, '--on-owner-loss', 'restore', ...workerArgs],
  });
  balancer = await startBalancer(() => cluster.gateways);
}

async function stopProduct(): Promise<void> {
  await balancer[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
}

const onAll = (what: (broker: KafkaBroker) => Promise<void>): Promise<unknown> => Promise.all(kafka.members.map(what));

/** The broker that keeps the group of the workers. */
async function findCoordinator(): Promise<KafkaBroker> {
  const args = cluster.log.args('worker');
  const group = `${args[args.indexOf('--prefix') + 1] ?? ''}.workers`;
  const ask = ['--bootstrap-server', kafka.toolBootstrap, '--describe', '--group', group, '--state'];
  const { output } = await kafka.runTool('kafka-consumer-groups', ask);
  const id = /\s\S+:\d+\s+\((?<id>\d+)\)/.exec(output)?.groups?.['id'];
  if (id === undefined) throw new Error(`no coordinator in: ${output}`);
  return kafka.member(Number(id));
}

async function startCrowd(): Promise<void> {
  crowd = await startStreamingCrowd(CLIENTS, {
    url: balancer.url,
    steps: 20,
    intervalMs: 200,
    callDeadlineMs: OUTAGE_MS + START_MS + RECOVERY_MS,
  });
  await crowd.progress(10, RECOVERY_MS);
}

async function endCrowd(): Promise<void> {
  await onAll((member) => member.start());
  await crowd.finish();
}

/** Everybody goes on after `fault`, and gets what it has to get: nothing was lost, repeated or left hanging. Resolves with the calls that were told that their owner was lost. */
async function survive(what: string, fault: () => Promise<unknown>): Promise<number> {
  showLogsOnFailure(cluster);
  const endWatch = crowd.watchSilence();
  const startedAt = performance.now();
  await fault();
  const faultMs = performance.now() - startedAt;
  await crowd.progress(15, RECOVERY_MS);
  const { p50Ms, worstMs } = endWatch();
  await crowd.finish();
  const { calls, refused, mayHaveRun, ownerLost, relistened, longestHeadMs } = crowd.counts;
  process.stdout.write(
    `${what}: longest silence p50 ${p50Ms} ms, worst ${worstMs} ms over ${CLIENTS} clients, of a fault of ${faultMs.toFixed(0)} ms; ` +
      `${calls} calls; ${refused} answers 503, ${mayHaveRun} answers 504 (may have run), ${ownerLost} calls lost their owner, ` +
      `${relistened} standalone streams asked for again; slowest answer ${longestHeadMs.toFixed(0)} ms\n`,
  );
  expect(crowd.failures).toEqual([]);
  return ownerLost;
}

describe.skipIf(inject('kafkaCluster') === null)('brokers that fail', () => {
  beforeAll(async () => {
    kafka = await startKafkaCluster({
      // The default leaves no heap for anything else.
      overrides: { 'log.cleaner.dedupe.buffer.size': '16777216' },
    });
  }, 180_000);
  afterAll(() => kafka.stop(), 60_000);

  describe('under 50 streaming clients', () => {
    beforeAll(() => startProduct(), 90_000);
    afterAll(() => stopProduct(), 60_000);
    beforeEach(() => startCrowd(), 150_000);
    afterEach(() => endCrowd(), 300_000);

    it(
      '[BRK-KILL] one broker of three is killed: 0 messages lost, 0 repeated, 0 calls hang',
      async () => {
        const coordinator = await findCoordinator();
        const victim = kafka.members.find(({ id }) => id !== coordinator.id);
        expect(await survive('broker killed', async () => victim?.kill())).toBe(0);
      },
      TEST_MS,
    );

    it(
      '[BRK-KILL] the broker that keeps the group of the workers is killed: the same',
      async () => {
        const coordinator = await findCoordinator();
        expect(await survive('coordinator killed', () => coordinator.kill())).toBe(0);
      },
      TEST_MS,
    );

    it(
      '[BRK-LEADERS] a broker is stopped in order and started again, and its leaders move back to it: the same',
      async () => {
        const [victim] = kafka.members;
        const elect = ['--bootstrap-server', kafka.toolBootstrap, '--election-type', 'preferred'];
        const move = async (): Promise<boolean> =>
          (await kafka.runTool('kafka-leader-election', [...elect, '--all-topic-partitions'])).code === 0;
        const lost = await survive('leaders moved', async () => {
          await victim?.restart();
          // It has to have caught up before.
          await waitUntil('the election', move, RECOVERY_MS);
        });
        expect(lost).toBe(0);
      },
      TEST_MS,
    );

    it(
      '[BRK-PAUSE] a broker stands still for 15 s with its sockets open: the same, but for calls that may be told that their owner was lost',
      async () => {
        const victim = await findCoordinator();
        await survive('broker paused', async () => {
          await victim.pause();
          await pause(PAUSE_MS);
          await victim.resume();
        });
      },
      TEST_MS,
    );

    it(
      '[BRK-RESTORE] an outage that is longer than --append-timeout ends no session of a restore server: its running call is told whether it may have run',
      async () => {
        await crowd.finish();
        const client = await RawClient.connect(balancer.url);
        const call = await client.callTool(balancer.url, 'countdown', { from: 1000, intervalMs: 100 });
        await call.until('a step', ({ data }) => data.includes('"progress":3,'));
        await onAll((member) => member.kill());
        await pause(APPEND_MS + 5000);
        await onAll((member) => member.start());
        await within('the call to end', call.closed, RECOVERY_MS);
        expect(JSON.parse(call.events().at(-1)?.data ?? '{}')).toMatchObject({
          error: { data: { code: 'OWNER_LOST', mayHaveRun: true } },
        });
        const echo = await waitUntil(
          'an answer',
          async () => {
            const answer = await client.callTool(balancer.url, 'echo', { text: 'still here' });
            return answer.status === 200 ? answer : null;
          },
          RECOVERY_MS,
        );
        await echo.until('the echo', ({ data }) => data.includes('still here'), RECOVERY_MS);
      },
      TEST_MS,
    );
  });

  describe('all of them, under workers that wait for longer', () => {
    beforeAll(() => startProduct('--append-timeout', '120s'), 90_000);
    afterAll(() => stopProduct(), 60_000);
    beforeEach(() => startCrowd(), 150_000);
    afterEach(() => endCrowd(), 300_000);

    it(
      '[BRK-OUTAGE] for 20 s: open streams stay open on keepalives, a POST gets 503 with Retry-After in time, and afterwards all goes on: 0 lost, 0 repeated, 0 hung',
      async () => {
        const idle = await RawClient.connect(balancer.url);
        const lost = await survive('outage', async () => {
          await onAll((member) => member.kill());
          const alive = crowd.clients.map((client) => client.aliveOn());
          const over = pause(OUTAGE_MS);
          const startedAt = performance.now();
          const refused = await idle.callTool(balancer.url, 'echo', { text: 'too early' });
          expect(performance.now() - startedAt).toBeLessThan(APPEND_MS);
          expect(refused.status, await refused.text()).toBe(503);
          expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
          await over;
          for (const [index, client] of crowd.clients.entries())
            expect(client.aliveOn()).toBeGreaterThan((alive[index] ?? 0) + OUTAGE_MS / 2000);
          await onAll((member) => member.start());
        });
        expect(lost).toBe(0);
        expect(crowd.counts.relistened).toBe(0);
      },
      TEST_MS,
    );

    it(
      '[BRK-RESTART] all brokers are stopped in order and started again: 0 lost, 0 repeated, 0 hung',
      async () => {
        const lost = await survive('cluster restarted', async () => {
          await onAll((member) => member.stop());
          await onAll((member) => member.start());
        });
        expect(lost).toBe(0);
      },
      TEST_MS,
    );
  });
});
