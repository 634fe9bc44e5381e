/** Topics of their own for a test file on the broker of the run, and what an operator can do to them. */
import { Kafka, logLevel } from 'kafkajs';
import type { Admin } from 'kafkajs';
import { inject } from 'vitest';
import type { Offset, Topic } from '@throughline/protocol';
import { encodeText } from '@throughline/protocol';
import { eventually } from '../../conformance/eventually.ts';
import type { PartitionRef } from '../../port.ts';
import { systemClock } from '../../system.ts';
import type { KafkaControls, KafkaLog, KafkaLogOptions, TopicPlanOptions } from '../index.ts';
import { applyTopics, openKafkaLogWithControls } from '../index.ts';
import { createClusterMap } from '../cluster-map.ts';
import { alterTopicsCall, describeTopicsCall } from '../wire/cluster.ts';

export interface KafkaBench {
  readonly prefix: string;
  readonly brokers: readonly string[];
  readonly kafka: Kafka;
  readonly admin: Admin;
  open(options?: Partial<KafkaLogOptions>): Promise<KafkaLog>;
  controls(log: KafkaLog): KafkaControls;
  opened(): readonly KafkaLog[];
  set(topic: Topic, settings: Readonly<Record<string, string>>): Promise<void>;
  evict(ref: PartitionRef, before: Offset): Promise<void>;
  /** Waits until nothing superseded is left of what was appended so far. */
  compact(topic: Topic): Promise<void>;
  /** One topic after the other, with time between. */
  grow(partitions: number): Promise<void>;
  closeLogs(): Promise<void>;
  dispose(): Promise<void>;
}

let benches = 0;

/** `null`: there is no broker, or the test does not run in the Kafka lane. */
export function brokersForTests(): readonly string[] | null {
  return inject('kafka')?.brokers ?? null;
}

export async function openKafkaBench(
  brokers: readonly string[],
  plan: Partial<TopicPlanOptions> = {},
): Promise<KafkaBench> {
  const prefix = `test-${process.pid}-${Date.now().toString(36)}-${++benches}`;
  const client = { brokers, clientId: 'throughline-test', clock: systemClock };
  await applyTopics(client, { prefix, partitions: 4, replication: 1, ...plan });
  const kafka = new Kafka({ clientId: 'throughline-test', brokers: [...brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const logs = new Map<KafkaLog, KafkaControls>();
  const open = async (options: Partial<KafkaLogOptions> = {}): Promise<KafkaLog> => {
    const opened = await openKafkaLogWithControls({ ...client, prefix, ...options });
    logs.set(opened.log, opened.controls);
    return opened.log;
  };
  const set: KafkaBench['set'] = async (topic, settings) => {
    const map = createClusterMap(client);
    try {
      const name = `${prefix}.${topic}`;
      await map.callAny(alterTopicsCall([{ name, settings: new Map(Object.entries(settings)) }]), 20_000);
      await eventually(systemClock, 'the broker shows the settings', async () => {
        const [described] = await map.callAny(describeTopicsCall([name], null), 20_000);
        return Object.entries(settings).every(([setting, value]) => described?.settings.get(setting) === value);
      });
    } finally {
      map.close();
    }
  };
  const closeLogs = async (): Promise<void> => {
    await Promise.all([...logs.keys()].map((log) => log.close()));
    logs.clear();
  };
  return {
    prefix,
    brokers,
    kafka,
    admin,
    open,
    set,
    closeLogs,
    controls(log) {
      const controls = logs.get(log);
      if (controls === undefined) throw new RangeError('a log of another bench');
      return controls;
    },
    opened: () => [...logs.keys()],
    async evict({ topic, partition }, before) {
      const name = `${prefix}.${topic}`;
      // kafkajs finds no leaders without it.
      await admin.fetchTopicMetadata({ topics: [name] });
      await admin.deleteTopicRecords({ topic: name, partitions: [{ partition, offset: String(before) }] });
    },
    async grow(partitions) {
      for (const topic of ['inbound', 'events', 'sessions'] as const)
        await admin.createPartitions({ topicPartitions: [{ topic: `${prefix}.${topic}`, count: partitions }] });
    },
    async compact(topic) {
      const settings = { 'segment.ms': '50', 'min.cleanable.dirty.ratio': '0.0', 'min.compaction.lag.ms': '0' };
      await set(topic, settings);
      const log = await open();
      const ref: PartitionRef = { topic, partition: 0 };
      const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
      // A record that comes later than `segment.ms` after the first of a segment begins a new one; the former is compacted then.
      await wait(150);
      const {
        offsets: [border = 0],
      } = await log.append(ref, [{ key: encodeText('segment-end'), value: null, headers: [] }]);
      await eventually(
        systemClock,
        'the broker compacts',
        async () => {
          const seen = new Set<string>();
          for (let at = (await log.bounds(ref)).start; at < border;) {
            const batch = await log.read(ref, at);
            for (const { key, offset } of batch.records) {
              if (offset >= border) break;
              const name = Buffer.from(key ?? []).toString('hex');
              if (seen.has(name)) {
                await wait(50);
                return false;
              }
              seen.add(name);
            }
            at = batch.next;
          }
          return true;
        },
        25_000,
      );
    },
    async dispose() {
      await closeLogs();
      const topics = (await admin.listTopics()).filter((name) => name.startsWith(`${prefix}.`));
      if (topics.length > 0) await admin.deleteTopics({ topics });
      await admin.disconnect();
    },
  };
}
