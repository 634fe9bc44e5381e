import { ConfigResourceTypes } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../system.ts';
import { applyTopics, diffTopics } from './index.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const brokers = brokersForTests();

describe.skipIf(brokers === null)('topics on a broker', () => {
  it('[KAFKA-TOPICS-APPLY] apply does what diff says, once; foreign settings stay, and nothing shrinks', async () => {
    const client = { brokers: brokers ?? [], clientId: 'test', clock: systemClock };
    const bench = await openKafkaBench(client.brokers);
    const { prefix } = bench;
    const plan = { prefix, partitions: 4, replication: 1 };
    expect(await diffTopics(client, plan)).toEqual([]);
    expect(await applyTopics(client, plan)).toEqual([]);
    await bench.set('events', { 'file.delete.delay.ms': '1234', 'retention.ms': '5000' });
    const wanted = { ...plan, partitions: 5, retentionMs: 2 * 86_400_000 };
    const changes = await diffTopics(client, wanted);
    expect(changes).toContainEqual({ kind: 'add-partitions', topic: `${prefix}.sessions`, from: 4, to: 5 });
    expect(changes).toContainEqual({
      kind: 'set',
      topic: `${prefix}.events`,
      setting: 'retention.ms',
      from: '5000',
      to: '172800000',
    });
    expect(await applyTopics(client, wanted)).toEqual(changes);
    expect(await diffTopics(client, wanted)).toEqual([]);
    const { resources } = await bench.admin.describeConfigs({
      includeSynonyms: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: `${prefix}.events`,
          configNames: ['file.delete.delay.ms', 'retention.ms'],
        },
      ],
    });
    const found = resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]);
    expect(Object.fromEntries(found ?? [])).toEqual({ 'file.delete.delay.ms': '1234', 'retention.ms': '172800000' });
    const refused = await applyTopics(client, plan);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.filter(({ kind, topic }) => kind !== 'refused' && topic.endsWith('.sessions'))).toEqual([]);
    expect((await bench.open()).description).toMatchObject({ partitions: 5, retentionMs: 172_800_000 });
    await bench.dispose();
  });
});
