/** What a cluster shows of itself and of the topics of a prefix, for whoever looks after it. Reads only. */
import { TOPICS } from '@throughline/protocol';
import type { Partition, Topic } from '@throughline/protocol';
import { sleep } from '../clock.ts';
import { WORKER_GROUP } from '../port.ts';
import { createClusterMap } from './cluster-map.ts';
import type { ClusterMap } from './cluster-map.ts';
import { openConnection } from './connection.ts';
import { brokerFailure, isDenial, isPassing, KafkaFailure } from './kafka-failure.ts';
import type { KafkaClientOptions } from './options.ts';
import { checkPrefix, groupName, topicName } from './topic-names.ts';
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';
import { abilitiesCall, describeBrokerCall, describeTopicsCall } from './wire/cluster.ts';
import type { ClusterMetadata } from './wire/cluster.ts';
import { decodeAssignment, describeGroupCall, findCoordinatorCall } from './wire/group.ts';

/** What was asked for, or why it is not known. */
export type Asked<T> =
  | { readonly known: true; readonly value: T }
  /** `denied`: this user may not see it. */
  | { readonly known: false; readonly denied: boolean; readonly message: string };

export interface BrokerFacts {
  readonly node: number;
  readonly address: string;
  readonly abilities: Asked<{
    /** The newest `metadata.version` that its software knows; null: older than features. */
    readonly softwareLevel: number | null;
    /** The `metadata.version` that the cluster agreed on. */
    readonly clusterLevel: number | null;
    /** Requests of this driver that it does not serve in the version needed. */
    readonly missing: readonly string[];
  }>;
}

export interface TopicPartitionFacts {
  readonly partition: Partition;
  /** −1: none, it is offline. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

export interface TopicFactsOf {
  readonly topic: Topic;
  readonly name: string;
  /** Null: there is no such topic. */
  readonly partitions: Asked<readonly TopicPartitionFacts[] | null>;
  readonly settings: Asked<ReadonlyMap<string, string>>;
}

export interface GroupFacts {
  readonly name: string;
  readonly state: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly clientId: string;
    readonly host: string;
    readonly partitions: readonly Partition[];
  }[];
}

export interface KafkaFacts {
  /** Unknown: nothing else is known either. */
  readonly cluster: Asked<{ readonly clusterId: string; readonly controller: number }>;
  readonly brokers: readonly BrokerFacts[];
  readonly topics: readonly TopicFactsOf[];
  readonly group: Asked<GroupFacts>;
  /** Of one broker: `group.min.session.timeout.ms` and others that matter here. */
  readonly brokerSettings: Asked<ReadonlyMap<string, string>>;
}

const ASK_MS = 8000;
/** How long the coordinator of a group is waited for. */
const COORDINATOR_MS = 10_000;
const COORDINATOR_PAUSE_MS = 250;
const NO_COORDINATOR = `the cluster gave no coordinator within ${COORDINATOR_MS / 1000} s`;
const UNASKED = { known: false, denied: false, message: 'the cluster does not answer' } as const;

/** Request and version that this driver needs; brokers since 2.4 have all. */
const NEEDED: readonly (readonly [key: number, version: number, name: string])[] = [
  [0, 7, 'Produce'],
  [1, 11, 'Fetch'],
  [2, 2, 'ListOffsets'],
  [3, 5, 'Metadata'],
  [8, 5, 'OffsetCommit'],
  [9, 5, 'OffsetFetch'],
  [11, 4, 'JoinGroup'],
  [22, 1, 'InitProducerId'],
  [44, 0, 'IncrementalAlterConfigs'],
];

const BROKER_SETTINGS = [
  'group.min.session.timeout.ms',
  'group.max.session.timeout.ms',
  'auto.create.topics.enable',
] as const;

/** Never rejects for what the cluster does: what could not be asked is unknown, each within 8 s, the group within 20 s. Throws `TypeError` on options that cannot be. */
export async function describeKafka(client: KafkaClientOptions, prefix: string): Promise<KafkaFacts> {
  checkPrefix(prefix);
  const map = createClusterMap(client);
  try {
    const names = TOPICS.map((topic) => topicName(prefix, topic));
    const metadata = await ask(() => map.metadata(names));
    if (!metadata.known) return { cluster: metadata, brokers: [], topics: [], group: UNASKED, brokerSettings: UNASKED };
    const { clusterId, controller } = metadata.value;
    const [brokers, topics, group, brokerSettings] = await Promise.all([
      Promise.all(metadata.value.brokers.map((broker) => describeBroker(client, broker))),
      describeTopics(map, metadata.value, prefix),
      describeGroup(client, map, groupName(prefix, WORKER_GROUP)),
      describeSettings(client, metadata.value),
    ]);
    const cluster = { known: true, value: { clusterId: clusterId ?? '', controller } } as const;
    return { cluster, brokers, topics, group, brokerSettings };
  } finally {
    map.close();
  }
}

async function describeBroker(
  client: KafkaClientOptions,
  { node, host, port }: ClusterMetadata['brokers'][number],
): Promise<BrokerFacts> {
  const connection = openConnection(client, { host, port });
  try {
    const abilities = await ask(async () => {
      const { highest, supported, finalized } = await connection.call(abilitiesCall(), ASK_MS);
      const levelIn = (features: typeof supported): number | null =>
        features.find(({ name }) => name === 'metadata.version')?.level ?? null;
      const missing = NEEDED.filter(([key, version]) => (highest.get(key) ?? -1) < version).map(([, , name]) => name);
      return { softwareLevel: levelIn(supported), clusterLevel: levelIn(finalized), missing };
    });
    return { node, address: `${host}:${port}`, abilities };
  } finally {
    connection.destroy();
  }
}

async function describeTopics(map: ClusterMap, metadata: ClusterMetadata, prefix: string): Promise<TopicFactsOf[]> {
  const there = metadata.topics.filter(({ partitions }) => partitions.length > 0).map(({ name }) => name);
  const described =
    there.length === 0
      ? ({ known: true, value: [] } as const)
      : await ask(() => map.callAny(describeTopicsCall(there, null), ASK_MS));
  return TOPICS.map((topic) => {
    const name = topicName(prefix, topic);
    const found = metadata.topics.find((each) => each.name === name);
    const settings = described.known ? described.value.find((each) => each.name === name) : undefined;
    return {
      topic,
      name,
      partitions: partitionsOf(found),
      settings: !described.known
        ? described
        : settings === undefined
          ? { known: false, denied: false, message: 'the topic does not exist' }
          : settings.error === 0
            ? { known: true, value: settings.settings }
            : refusal(settings.error),
    };
  });
}

function partitionsOf(found: ClusterMetadata['topics'][number] | undefined): TopicFactsOf['partitions'] {
  if (found === undefined || found.error === KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION)
    return { known: true, value: null };
  if (found.partitions.length === 0 && found.error !== 0) return refusal(found.error);
  return {
    known: true,
    value: found.partitions.map(({ partition, leader, replicas, inSync }) => ({ partition, leader, replicas, inSync })),
  };
}

async function describeGroup(client: KafkaClientOptions, map: ClusterMap, name: string): Promise<Asked<GroupFacts>> {
  const { clock } = client;
  const untilMs = clock.monoMs() + COORDINATOR_MS;
  for (;;) {
    const facts = await askCoordinator(client, map, name);
    if (facts !== 'passing') return facts;
    if (clock.monoMs() >= untilMs) return { known: false, denied: false, message: NO_COORDINATOR };
    await sleep(clock, COORDINATOR_PAUSE_MS);
  }
}

/** `passing`: the coordinator moves, or the cluster makes the topic of groups, as the first time that one is asked for. */
async function askCoordinator(
  client: KafkaClientOptions,
  map: ClusterMap,
  name: string,
): Promise<Asked<GroupFacts> | 'passing'> {
  const found = await ask(() => map.callAny(findCoordinatorCall(name), ASK_MS));
  if (!found.known) return found;
  if (isPassing(brokerFailure('FindCoordinator', found.value.error))) return 'passing';
  if (found.value.error !== 0) return refusal(found.value.error);
  const connection = openConnection(client, found.value);
  try {
    const described = await ask(() => connection.call(describeGroupCall(name), ASK_MS));
    if (!described.known) return described;
    const { error, state, members } = described.value;
    if (isPassing(brokerFailure('DescribeGroups', error))) return 'passing';
    if (error !== 0) return refusal(error);
    const topic = `${name.slice(0, -WORKER_GROUP.length)}inbound`;
    return {
      known: true,
      value: {
        name,
        state,
        members: members.map(({ memberId, clientId, host, assignment }) => ({
          ...{ memberId, clientId, host },
          partitions: decodeAssignment(assignment, topic),
        })),
      },
    };
  } finally {
    connection.destroy();
  }
}

/** Of the controller or any other: they are set alike, or should be. */
async function describeSettings(
  client: KafkaClientOptions,
  metadata: ClusterMetadata,
): Promise<KafkaFacts['brokerSettings']> {
  const broker = metadata.brokers.find(({ node }) => node === metadata.controller) ?? metadata.brokers[0];
  if (broker === undefined) return UNASKED;
  const connection = openConnection(client, broker);
  try {
    const described = await ask(() => connection.call(describeBrokerCall(broker.node, BROKER_SETTINGS), ASK_MS));
    if (!described.known) return described;
    const [settings] = described.value;
    if (settings === undefined) return UNASKED;
    return settings.error === 0 ? { known: true, value: settings.settings } : refusal(settings.error);
  } finally {
    connection.destroy();
  }
}

function refusal(error: number): { readonly known: false; readonly denied: boolean; readonly message: string } {
  return { known: false, denied: isDenial(error), message: nameOfError(error) };
}

async function ask<T>(what: () => Promise<T>): Promise<Asked<T>> {
  try {
    return { known: true, value: await what() };
  } catch (error) {
    if (!(error instanceof KafkaFailure)) throw error;
    return { known: false, denied: isDenial(error.brokerError), message: error.message };
  }
}
