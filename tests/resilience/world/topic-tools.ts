/** What faults do to the topics of the product and to the group of its workers, by Kafka's own means. */
import { Kafka, logLevel } from 'kafkajs';
import type { KafkaCluster } from '@throughline/testkit/kafka';
import { waitUntil } from '@throughline/testkit/processes';

export interface PartitionPlace {
  readonly topic: string;
  readonly partition: number;
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
}

export interface TopicTools {
  /** Of the product: `events` → its full name. */
  nameOf(topic: string): string;
  /** Of these topics, by full name. */
  places(topics: readonly string[]): Promise<readonly PartitionPlace[]>;
  /** Node id of the broker that keeps the group of the workers. */
  coordinator(): Promise<number>;
  /** Removes all records that are there now. */
  deleteRecords(topic: string): Promise<void>;
  deleteTopics(topics: readonly string[]): Promise<void>;
  /** Other replicas or another order of them; the first is the preferred leader. Resolves when all are in sync. */
  reassign(places: readonly { topic: string; partition: number; replicas: readonly number[] }[]): Promise<void>;
  /** Makes the preferred replicas leaders. */
  electPreferred(): Promise<void>;
  /** Settings of a topic; null removes one. */
  configure(topic: string, settings: Readonly<Record<string, string | null>>): Promise<void>;
  close(): Promise<void>;
}

const DEADLINE_MS = 60_000;

export async function openTopicTools(kafka: KafkaCluster, prefix: string): Promise<TopicTools> {
  const client = new Kafka({
    ...{ clientId: 'throughline-test', brokers: [...kafka.brokers], logLevel: logLevel.NOTHING },
    retry: { retries: 8, initialRetryTime: 200, maxRetryTime: 3000 },
  });
  const admin = client.admin();
  await admin.connect();
  const bootstrap = ['--bootstrap-server', kafka.toolBootstrap];
  const tool = async (name: string, args: readonly string[]): Promise<string> => {
    const { code, output } = await kafka.runTool(name, [...bootstrap, ...args]);
    if (code !== 0) throw new Error(`${name} ${args.join(' ')}: ${output}`);
    return output;
  };
  const places = async (topics: readonly string[]): Promise<PartitionPlace[]> => {
    const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] });
    return found.flatMap(({ name, partitions }) =>
      partitions.map(({ partitionId, leader, replicas, isr }) => ({
        ...{ topic: name, partition: partitionId, leader, replicas, isr },
      })),
    );
  };
  const nameOf = (topic: string): string => `${prefix}.${topic}`;
  return {
    nameOf,
    places,
    async coordinator() {
      const output = await tool('kafka-consumer-groups', ['--describe', '--group', `${prefix}.workers`, '--state']);
      const id = /\s\S+:\d+\s+\((?<id>\d+)\)/.exec(output)?.groups?.['id'];
      if (id === undefined) throw new Error(`no coordinator in: ${output}`);
      return Number(id);
    },
    async deleteRecords(topic) {
      const ends = await admin.fetchTopicOffsets(topic);
      const partitions = ends.map(({ partition, high }) => ({ partition, offset: high }));
      await admin.fetchTopicMetadata({ topics: [topic] });
      await admin.deleteTopicRecords({ topic, partitions });
    },
    async deleteTopics(topics) {
      await admin.deleteTopics({ topics: [...topics], timeout: DEADLINE_MS });
    },
    async reassign(wanted) {
      const byTopic = Map.groupBy(wanted, ({ topic }) => topic);
      await admin.alterPartitionReassignments({
        topics: [...byTopic].map(([topic, list]) => ({
          topic,
          partitionAssignment: list.map(({ partition, replicas }) => ({ partition, replicas: [...replicas] })),
        })),
        timeout: DEADLINE_MS,
      });
      await waitUntil(
        'the reassignment',
        async () => {
          const now = await places([...byTopic.keys()]);
          return wanted.every(({ topic, partition, replicas }) => {
            const place = now.find((each) => each.topic === topic && each.partition === partition);
            return place?.replicas.join() === replicas.join() && place.isr.length === replicas.length;
          });
        },
        DEADLINE_MS,
      );
    },
    async electPreferred() {
      // Exit code 1 where a partition has its preferred leader already is none of ours: it says so by 0.
      await waitUntil(
        'the election',
        async () => {
          const args = [...bootstrap, '--election-type', 'preferred', '--all-topic-partitions'];
          return (await kafka.runTool('kafka-leader-election', args)).code === 0;
        },
        DEADLINE_MS,
      );
    },
    async configure(topic, settings) {
      const entity = ['--alter', '--entity-type', 'topics', '--entity-name', topic];
      const set = Object.entries(settings).filter(([, value]) => value !== null);
      const unset = Object.keys(settings).filter((name) => settings[name] === null);
      const add = set.map(([name, value]) => `${name}=${value ?? ''}`).join(',');
      await tool('kafka-configs', [
        ...entity,
        ...(set.length === 0 ? [] : ['--add-config', add]),
        ...(unset.length === 0 ? [] : ['--delete-config', unset.join(',')]),
      ]);
    },
    close: () => admin.disconnect(),
  };
}
