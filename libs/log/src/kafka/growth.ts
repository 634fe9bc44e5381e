/**
 * Looks at what becomes of the topics under a living log, as long as anybody wants to know: partitions that were added
 * (topics grow one after the other, the smallest count is the one that can be used), and topics that were made anew under
 * their names, which answer old positions with other records. SPEC: LOG-GROWN, KAFKA-GROWN, KAFKA-ANEW.
 */
import { hasOnePartition, TOPICS } from '@throughline/protocol';
import type { Clock } from '../clock.ts';
import type { PartitionCount } from '../partition-count.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { KafkaLogEvent } from './options.ts';
import { topicName } from './topic-names.ts';
import { apiVersionsCall, METADATA_WITH_IDS, metadataCall, topicIdsCall } from './wire/cluster.ts';
import type { TopicIdentity } from './wire/cluster.ts';

export interface Growth {
  /** Asks now. Rejects with `KafkaFailure`. */
  look(): Promise<void>;
  /** From the first call on it is looked at every 5 s. */
  watch(): void;
  stop(): void;
}

/** Milliseconds between two looks. */
const GROWTH_MS = 5000;
const ANSWER_MS = 5000;
/** Those whose partitions belong together. */
const WIDE = TOPICS.filter((topic) => !hasOnePartition(topic));

/** How many partitions all of them have. `of`: how many one has. */
export function commonPartitions(of: (topic: (typeof WIDE)[number]) => number): number {
  return Math.min(...WIDE.map(of));
}

export function createGrowth(options: {
  readonly clock: Clock;
  readonly map: Pick<ClusterMap, 'callAny'>;
  readonly prefix: string;
  readonly count: PartitionCount;
  onLog(event: KafkaLogEvent): void;
  /** A topic has an id that it never had before. */
  onMadeAnew(topic: string): void;
}): Growth {
  const { clock, map, prefix, count } = options;
  const names = TOPICS.map((topic) => topicName(prefix, topic));
  /** By topic, all that it ever had: a broker that is cut off from its cluster may still tell a former one. */
  const ids = new Map<string, Set<string>>();
  let tellsIds: boolean | null = null;
  let cancel: (() => void) | null = null;
  let isWatching = false;
  let isStopped = false;

  // Not by the map's own question: what it knows of leaders must not look younger than it is.
  const ask = async (): Promise<readonly TopicIdentity[]> => {
    tellsIds ??=
      ((await map.callAny(apiVersionsCall(), ANSWER_MS)).highest.get(METADATA_WITH_IDS.key) ?? 0) >=
      METADATA_WITH_IDS.version;
    if (tellsIds) {
      try {
        return await map.callAny(topicIdsCall(names), ANSWER_MS);
      } catch (error) {
        // While brokers are replaced another one may not know the version.
        tellsIds = null;
        throw error;
      }
    }
    const { topics } = await map.callAny(metadataCall(names), ANSWER_MS);
    return topics.map(({ name, partitions }) => ({ name, id: null, partitions: partitions.length }));
  };
  const look = async (): Promise<void> => {
    const topics = await ask();
    if (isStopped) return;
    for (const { name, id } of topics) {
      if (id === null) continue;
      const known = ids.get(name);
      if (known?.has(id) === false) options.onMadeAnew(name);
      ids.set(name, (known ?? new Set()).add(id));
    }
    const before = count.known();
    const now = commonPartitions((topic) => {
      const name = topicName(prefix, topic);
      return topics.find((each) => each.name === name)?.partitions ?? 0;
    });
    if (now <= before) return;
    options.onLog({ level: 'info', message: 'partitions were added', fields: { from: before, to: now } });
    count.learn(now);
  };
  const next = (): void => {
    if (isStopped) return;
    cancel = clock.setTimer(GROWTH_MS, () => {
      // Whoever needs the cluster for more than this says that it does not answer.
      look().then(next, next);
    });
  };
  return {
    look,
    watch() {
      if (isWatching) return;
      isWatching = true;
      // At once: what the topics are now is what they are compared with.
      look().then(next, next);
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
