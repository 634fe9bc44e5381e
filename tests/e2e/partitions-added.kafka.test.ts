/** Partitions are added to the topics while gateways, workers, sessions and calls live: nothing is started again. */
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { parseSessionId } from '@throughline/protocol';
import { makeKafkaPlace, RawClient, startCluster, waitUntil } from '@throughline/testkit/processes';
import type { Cluster } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { showLogsOnFailure } from './show-logs.ts';

const brokers = inject('kafka')?.brokers ?? null;
const STEPS = 200;
const GROWN_MS = 60_000;

const partitionOf = (client: RawClient): number => parseSessionId(client.sessionId)?.id.partition ?? -1;

describe.skipIf(brokers === null)('partitions that are added', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    // Servers that end their sessions when their owner changes: a session that moves would show.
    cluster = await startCluster({
      log: makeKafkaPlace({ brokers: brokers ?? [], partitions: 2, leaseMs: 6000 }),
      workerArgs: ['--module', SERVER_V2],
    });
  }, 90_000);
  afterAll(() => cluster[Symbol.asyncDispose](), 60_000);

  it(
    '[GW-GROWN][KAFKA-GROWN] are used by the gateways and workers that run: new sessions begin there and every gateway serves them; living sessions and calls notice nothing',
    { timeout: 150_000 },
    async () => {
      showLogsOnFailure(cluster);
      const [first = '', second = ''] = cluster.urls();
      const old = await RawClient.connect(first);
      const call = await old.callTool(first, 'countdown', { from: STEPS, intervalMs: 50 });
      await call.until('a step', ({ data }) => data.includes('"progress":3,'));

      const args = cluster.log.args('worker');
      const prefix = args[args.indexOf('--prefix') + 1] ?? '';
      const client = { brokers: brokers ?? [], clientId: 'test', clock: systemClock };
      await applyTopics(client, { prefix, partitions: 6, replication: 1 });

      const onNew = await waitUntil(
        'a session on a new partition',
        async () => {
          const next = await RawClient.connect(first);
          return partitionOf(next) >= 2 ? next : undefined;
        },
        GROWN_MS,
      );
      // Made by one gateway, used on the other at once: it may have heard of the partition, or asks.
      const answer = await onNew.callTool(second, 'echo', { text: 'on a new partition' });
      await answer.until('the echo', ({ data }) => data.includes('on a new partition'));
      expect(answer.status).toBe(200);

      await call.until('the result', ({ data }) => data.includes('"result"'), 60_000);
      const steps = call.events().flatMap(({ data }) => /"progress":(?<step>\d+),/.exec(data)?.groups?.['step'] ?? []);
      expect(steps.map(Number)).toEqual(Array.from({ length: STEPS }, (_, index) => index + 1));
      const again = await old.callTool(second, 'echo', { text: 'the old session' });
      await again.until('the echo', ({ data }) => data.includes('the old session'));

      for (const { logs } of cluster.workers) {
        const assigned = logs()
          .split('\n')
          .filter((line) => line.includes('"event":"assigned"'));
        expect((JSON.parse(assigned.at(-1) ?? '{}') as { partitions?: unknown[] }).partitions).toHaveLength(3);
      }
    },
  );
});
