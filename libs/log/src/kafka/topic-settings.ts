/** How the topics of a log have to be set. Design: records that are there must stay there, in the order of their times. */
import { TOPICS } from '@throughline/protocol';
import type { Topic } from '@throughline/protocol';
import { partitionCount } from '../check-append.ts';
import { checkPrefix, DEFAULT_PREFIX, topicName } from './topic-names.ts';

export interface TopicPlanOptions {
  /** Default `throughline`. */
  readonly prefix?: string;
  /** Of `inbound`, `events`, `sessions`; more than there are is added, fewer is refused. Default: what there is, or 12. */
  readonly partitions?: number;
  /** Replicas of new topics. Default 3. */
  readonly replication?: number;
  /** Milliseconds that `events` are held: the resume window. Default 24 h, or what there is if that is more. */
  readonly retentionMs?: number;
  /** Milliseconds that `inbound` is held, at least as long as `events`. Default: as `events`. */
  readonly inboundRetentionMs?: number;
  /** Largest batch, hence record. Default 8 MiB, or what there is if that is more. */
  readonly maxMessageBytes?: number;
}

export interface TopicPlan {
  readonly topic: Topic;
  readonly name: string;
  readonly partitions: number;
  readonly replication: number;
  /** Every setting that matters, also where it is Kafka's default: a broker may have other defaults. */
  readonly settings: ReadonlyMap<string, string>;
  /** What somebody asked for, rather than a default: `partitions`, `replication` and names of settings. */
  readonly asked: ReadonlySet<string>;
}

/** Replicas that have to be in sync for an append: two, and one less than there are. */
export function leastInSync(replication: number): number {
  return Math.max(1, Math.min(2, replication - 1));
}

const DEFAULT_PARTITIONS = 12;
export const DEFAULT_RETENTION_MS = 24 * 3600_000;
export const DEFAULT_MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
const LONGEST_SEGMENT_MS = 7 * 24 * 3600_000;
const COMPACTION_GRACE_MS = 60_000;

/** Retention goes by whole segments: records may stay an eighth longer, and an idle partition is emptied in time. */
export function segmentWithin(retentionMs: number): number {
  return Math.max(1, Math.min(LONGEST_SEGMENT_MS, Math.floor(retentionMs / 8)));
}

/** Throws `TypeError` or `RangeError` on options that cannot be. */
export function planTopics(options: TopicPlanOptions = {}): TopicPlan[] {
  const prefix = options.prefix ?? DEFAULT_PREFIX;
  const partitions = options.partitions ?? DEFAULT_PARTITIONS;
  const replication = options.replication ?? 3;
  const eventsMs = options.retentionMs ?? DEFAULT_RETENTION_MS;
  const inboundMs = options.inboundRetentionMs ?? eventsMs;
  const maxMessageBytes = options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES;
  checkPrefix(prefix);
  const numbers = { partitions, replication, retentionMs: eventsMs, inboundRetentionMs: inboundMs, maxMessageBytes };
  for (const [name, value] of Object.entries(numbers))
    if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} must be a whole number above 0`);
  if (inboundMs < eventsMs)
    throw new RangeError('inbound must be held at least as long as events: a request outlives its answer');

  const common = {
    'min.insync.replicas': String(leastInSync(replication)),
    'unclean.leader.election.enable': 'false',
    'message.timestamp.type': 'LogAppendTime',
    'max.message.bytes': String(maxMessageBytes),
    // The broker unpacks what producers compress, so that every reader can read it.
    'compression.type': 'uncompressed',
  };
  const deleted = (retentionMs: number): Record<string, string> => ({
    ...common,
    'cleanup.policy': 'delete',
    'retention.ms': String(retentionMs),
    'retention.bytes': '-1',
    'segment.ms': String(segmentWithin(retentionMs)),
  });
  const compacted = {
    ...common,
    'cleanup.policy': 'compact',
    'min.compaction.lag.ms': String(COMPACTION_GRACE_MS),
    'delete.retention.ms': String(DEFAULT_RETENTION_MS),
    'min.cleanable.dirty.ratio': '0.1',
    'segment.ms': String(3600_000),
  };
  const settingsOf = (topic: Topic): Record<string, string> => {
    switch (topic) {
      case 'inbound':
        return deleted(inboundMs);
      case 'events':
      case 'dead-letter':
        return deleted(eventsMs);
      case 'sessions':
      case 'meta':
        return compacted;
    }
  };
  const askedOf = (topic: Topic): ReadonlySet<string> => {
    const retentionMs = topic === 'inbound' ? options.inboundRetentionMs : options.retentionMs;
    const given = {
      partitions: options.partitions,
      replication: options.replication,
      'retention.ms': retentionMs,
      'max.message.bytes': options.maxMessageBytes,
    };
    return new Set(Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name])));
  };
  return TOPICS.map((topic) => ({
    topic,
    name: topicName(prefix, topic),
    partitions: partitionCount(topic, partitions),
    replication,
    settings: new Map(Object.entries(settingsOf(topic))),
    asked: askedOf(topic),
  }));
}
