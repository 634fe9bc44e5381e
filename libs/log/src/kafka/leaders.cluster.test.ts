/** What leaders that move and replicas that are lost do to appends and readers, on three brokers. */
import process from 'node:process';
import type { KafkaCluster } from '@throughline/testkit/kafka';
import { startCluster } from '@throughline/testkit/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../conformance/eventually.ts';
import { textRecord } from '../conformance/records.ts';
import { hasLogCode } from '../errors.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { startAppendLoad } from './testing/append-load.ts';
import type { AppendLoad } from './testing/append-load.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { openKafkaBench } from './testing/kafka-bench.ts';

const ROUNDS = process.env['DEEP'] === '1' ? 8 : 1;
const REFS: readonly PartitionRef[] = [0, 1].map((partition) => ({ topic: 'events', partition }));

describe.skipIf(inject('kafkaCluster') === null)('three brokers', () => {
  let cluster: KafkaCluster;
  let bench: KafkaBench;
  beforeAll(async () => {
    cluster = await startCluster();
    bench = await openKafkaBench(cluster.brokers, { replication: 3 });
  });
  afterEach(() => bench.closeLogs());
  // The topics go with the cluster.
  afterAll(async () => {
    await bench.admin.disconnect();
    await cluster.stop();
  });

  const partitionOf = async (partition: number) => {
    const { topics } = await bench.admin.fetchTopicMetadata({ topics: [`${bench.prefix}.events`] });
    const found = topics[0]?.partitions.find(({ partitionId }) => partitionId === partition);
    if (found === undefined) throw new Error(`no partition ${partition}`);
    return found;
  };
  const leaderOf = async (partition: number): Promise<number> => (await partitionOf(partition)).leader;
  const allInSync = (): Promise<void> =>
    eventually(
      systemClock,
      'all replicas are in sync',
      async () => {
        for (const partition of [0, 1, 2, 3]) if ((await partitionOf(partition)).isr.length < 3) return false;
        return true;
      },
      60_000,
    );
  const tool = async (name: string, ...args: string[]): Promise<void> => {
    const { code, output } = await cluster.runTool(name, ['--bootstrap-server', cluster.toolBootstrap, ...args]);
    if (code !== 0) throw new Error(`${name} ended with ${code}: ${output}`);
  };
  const startLoad = async (isEndChecked = true): Promise<AppendLoad> => {
    const [log, reader] = [await bench.open(), await bench.open({ readTimeoutMs: 60_000 })];
    return await startAppendLoad({ log, reader, refs: REFS, isEndChecked });
  };

  it(
    '[KAFKA-LEADER] when leaders are killed under load, each acked record is there once and in order, unknown ones at most once, and readers go on',
    { timeout: 60_000 + ROUNDS * 60_000 },
    async () => {
      const load = await startLoad();
      for (let round = 0; round < ROUNDS; round++) {
        await load.progress();
        const leader = cluster.member(await leaderOf(round % 2));
        await leader.kill();
        await load.progress();
        await leader.start();
        await allInSync();
      }
      await load.progress();
      expect(await load.finish()).toEqual([]);
    },
  );

  it(
    '[KAFKA-LEADER] elections and reassignments under load lose, repeat and reorder nothing, and no position counts as out of range',
    { timeout: 120_000 },
    async () => {
      const load = await startLoad();
      await load.progress();
      // Replicas in another order: the first one is who should lead.
      const before = await leaderOf(0);
      for (let round = 0; round < ROUNDS; round++) {
        const { leader, replicas } = await partitionOf(0);
        const order = [...replicas.filter((id) => id !== leader), leader];
        await bench.admin.alterPartitionReassignments({
          topics: [{ topic: `${bench.prefix}.events`, partitionAssignment: [{ partition: 0, replicas: order }] }],
        });
        await tool('kafka-leader-election', '--election-type', 'preferred', '--all-topic-partitions');
        await eventually(systemClock, 'the leader moved', async () => (await leaderOf(0)) === order[0], 30_000);
        await load.progress();
      }
      if (ROUNDS === 1) expect(await leaderOf(0)).not.toBe(before);
      expect(await load.finish()).toEqual([]);
    },
  );

  it(
    '[KAFKA-MIN-ISR] with too few replicas in sync appends end by code, in time, and go on when they are back',
    { timeout: 150_000 },
    async () => {
      await allInSync();
      await bench.set('events', { 'min.insync.replicas': '3' });
      const load = await startLoad();
      const impatient = await bench.open({ appendTimeoutMs: 2000 });
      await load.progress();
      const leader = await leaderOf(0);
      const follower = cluster.members.find(({ id }) => id !== leader)!;
      await follower.kill();
      await eventually(systemClock, 'it is out of sync', async () => (await partitionOf(0)).isr.length === 2, 60_000);
      for (let count = 0; count < 3; count++) {
        const startedMs = systemClock.monoMs();
        const failed: unknown = await impatient.append(REFS[0]!, [textRecord(`9/9/${count}`)]).then(
          () => null,
          (error: unknown) => error,
        );
        expect(hasLogCode(failed, 'APPEND_REFUSED') || hasLogCode(failed, 'APPEND_UNKNOWN')).toBe(true);
        expect(systemClock.monoMs() - startedMs).toBeLessThan(10_000);
      }
      await follower.start();
      await load.progress(50, 90_000);
      expect((await impatient.append(REFS[0]!, [textRecord('9/9/3')])).offsets).toHaveLength(1);
      await bench.set('events', { 'min.insync.replicas': '2' });
      expect(await load.finish()).toEqual([]);
    },
  );

  it.runIf(process.env['DEEP'] === '1')(
    '[KAFKA-LEADER] a leader that stands still, or that is cut off from the others and not from us, is replaced without loss, and does no harm when it is back',
    { timeout: 900_000 },
    async () => {
      const load = await startLoad(false);
      for (let round = 0; round < 3; round++) {
        await allInSync();
        await load.progress();
        const paused = cluster.member(await leaderOf(0));
        await paused.pause();
        await load.progress(50, 90_000);
        await paused.resume();
        await load.progress();
        if (cluster.network === null) continue;
        await allInSync();
        const cut = await leaderOf(1);
        // From the others only: clients still reach it, and it takes itself for the leader.
        await cluster.network.disconnect(cut);
        await load.progress(50, 150_000);
        await cluster.network.connect(cut);
        await load.progress();
      }
      await allInSync();
      expect(await load.finish()).toEqual([]);
    },
  );
});
