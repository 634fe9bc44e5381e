/**
 * Looks for partitions that were added, as long as anybody wants to know. Topics grow one after the other: the smallest
 * count is the one that can be used. SPEC: LOG-GROWN, KAFKA-GROWN.
 */
import { hasOnePartition, TOPICS } from '@throughline/protocol';
import type { Clock } from '../clock.ts';
import type { PartitionCount } from '../partition-count.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { KafkaLogEvent } from './options.ts';
import { topicName } from './topic-names.ts';
import { metadataCall } from './wire/cluster.ts';

export interface Growth {
  /** Asks now. Rejects with `KafkaFailure`. */
  look(): Promise<void>;
  /** From the first call on it is looked for every 5 s. */
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
}): Growth {
  const { clock, map, prefix, count } = options;
  const names = WIDE.map((topic) => topicName(prefix, topic));
  let cancel: (() => void) | null = null;
  let isStopped = false;

  const look = async (): Promise<void> => {
    // Not by the map's own question: what it knows of leaders must not look younger than it is.
    const { topics } = await map.callAny(metadataCall(names), ANSWER_MS);
    const before = count.known();
    const now = commonPartitions((topic) => {
      const name = topicName(prefix, topic);
      return topics.find((each) => each.name === name)?.partitions.length ?? 0;
    });
    if (isStopped || now <= before) return;
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
      if (cancel === null) next();
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
