/** What is looked at when a log is opened: topics that are not what they must be lose records in silence. */
import { TOPICS } from '@throughline/protocol';
import type { Topic } from '@throughline/protocol';
import { isCompacted } from '../check-append.ts';
import { LogError } from '../errors.ts';
import type { Acl, KafkaRole } from './acls.ts';
import { aclsOf, isAllowed } from './acls.ts';
import type { ClusterMap } from './cluster-map.ts';
import { commonPartitions } from './growth.ts';
import { deniedFailure, isDenial } from './kafka-failure.ts';
import type { KafkaLogEvent } from './options.ts';
import { topicName } from './topic-names.ts';
import { DEFAULT_MAX_MESSAGE_BYTES } from './topic-settings.ts';
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';
import type { TopicMetadata } from './wire/cluster.ts';
import { describeTopicsCall } from './wire/cluster.ts';

export interface TopicFacts {
  readonly clusterId: string;
  /** The smallest count of `inbound`, `events` and `sessions`: they grow one after the other. */
  readonly partitions: number;
  /** The smallest of all topics. */
  readonly maxMessageBytes: number;
  /** Of `events`; `null` if the settings may not be read. */
  readonly retentionMs: number | null;
}

const DESCRIBE_MS = 10_000;
const APPLY = { cure: 'apply-topics' } as const;

/** Errors: `LOG_INCOMPATIBLE`, with the way out; `KafkaFailure` for all rights together that the roles miss. */
export async function checkTopics(
  map: ClusterMap,
  prefix: string,
  roles: readonly KafkaRole[],
  onLog: (event: KafkaLogEvent) => void,
): Promise<TopicFacts> {
  const names = new Map<Topic, string>(TOPICS.map((topic) => [topic, topicName(prefix, topic)]));
  const metadata = await map.metadata([...names.values()], roles.length > 0);
  const denied = missingRights(metadata.topics, roles, prefix);
  if (denied.length > 0) throw deniedFailure(denied, KAFKA_ERRORS.TOPIC_AUTHORIZATION_FAILED);
  const counts = new Map<Topic, number>();
  const missing: string[] = [];
  for (const [topic, name] of names) {
    const found = metadata.topics.find((each) => each.name === name);
    if (found === undefined || found.partitions.length === 0) missing.push(name);
    else counts.set(topic, found.partitions.length);
  }
  if (missing.length > 0)
    throw new LogError('LOG_INCOMPATIBLE', `the cluster has no topic ${missing.join(', ')}`, APPLY);
  const countOf = (topic: Topic): number => counts.get(topic) ?? 0;
  if (countOf('meta') !== 1)
    throw new LogError('LOG_INCOMPATIBLE', `${prefix}.meta has ${countOf('meta')} partitions, and must have one`);

  const described = await map.callAny(
    describeTopicsCall(
      [...names.values()],
      ['cleanup.policy', 'message.timestamp.type', 'max.message.bytes', 'retention.ms'],
    ),
    DESCRIBE_MS,
  );
  let maxMessageBytes = Infinity;
  let retentionMs: number | null = null;
  for (const [topic, name] of names) {
    const found = described.find((each) => each.name === name);
    if (found === undefined || found.error !== 0) {
      onLog({
        level: 'warn',
        message: 'the settings of a topic cannot be checked; allow DescribeConfigs on it',
        fields: { topic: name, error: nameOfError(found?.error ?? -1) },
      });
      continue;
    }
    const { settings } = found;
    const must = (setting: string, value: string): void => {
      const is = settings.get(setting) ?? '';
      if (is !== value) throw new LogError('LOG_INCOMPATIBLE', `${name} has ${setting}=${is}, not ${value}`, APPLY);
    };
    must('cleanup.policy', isCompacted(topic) ? 'compact' : 'delete');
    must('message.timestamp.type', 'LogAppendTime');
    maxMessageBytes = Math.min(maxMessageBytes, Number(settings.get('max.message.bytes') ?? DEFAULT_MAX_MESSAGE_BYTES));
    const held = Number(settings.get('retention.ms') ?? 0);
    if (topic === 'events') retentionMs = held < 0 ? Number.MAX_SAFE_INTEGER : held;
  }
  return {
    clusterId: `${metadata.clusterId ?? ''}/${prefix}`,
    partitions: commonPartitions(countOf),
    maxMessageBytes: Number.isFinite(maxMessageBytes) ? maxMessageBytes : DEFAULT_MAX_MESSAGE_BYTES,
    retentionMs,
  };
}

/** All at once and in our order, so that nobody has to find them one by one. */
function missingRights(topics: readonly TopicMetadata[], roles: readonly KafkaRole[], prefix: string): Acl[] {
  const needed = roles.flatMap((role) => aclsOf(role, prefix)).filter(({ isOptional }) => !isOptional);
  return TOPICS.flatMap((topic): Acl[] => {
    const name = topicName(prefix, topic);
    const ofTopic = needed.filter((acl) => acl.resource === 'topic' && acl.name === name);
    const { error = 0, allowed = null } = topics.find((each) => each.name === name) ?? {};
    if (isDenial(error)) return ofTopic.length > 0 ? ofTopic : [{ resource: 'topic', name, operation: 'Describe' }];
    if (error !== 0 || allowed === null) return [];
    return ofTopic.filter(({ operation }) => !isAllowed(operation, allowed));
  });
}
