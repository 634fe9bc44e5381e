/** What several logs of one process share, as several processes share a broker. No timer, clock or chance of its own. */
import { TOPICS } from '@throughline/protocol';
import type { Offset, Topic } from '@throughline/protocol';
import { checkRef, isCompacted, partitionCount } from '../check-append.ts';
import type { Clock } from '../clock.ts';
import type { LogDescription, PartitionRef } from '../port.ts';
import { DEFAULT_MAX_RECORD_BYTES } from '../record-size.ts';
import { MemoryGroup } from './group.ts';
import { MemoryPartition } from './partition.ts';
import { itemAt } from '../item-at.ts';
import { PartitionCount } from '../partition-count.ts';

export interface MemoryStoreOptions {
  /** Gives timestamps (wall) and leases (mono) of the store. */
  readonly clock: Clock;
  /** Partitions of `inbound`, `events` and `sessions`. Default 4. */
  readonly partitions?: number;
  /** Bytes. Default 8 MiB. */
  readonly maxRecordBytes?: number;
  /** Milliseconds. Default 24 h. */
  readonly retentionMs?: number;
  /** Bytes of keys, values and headers held; appends beyond are refused with `size-cap`. Default: no bound. */
  readonly maxBytes?: number;
  /** Milliseconds a member stays without renewal. Default 3000. */
  readonly leaseMs?: number;
  /** Milliseconds a superseded record of a compacted topic is still held. Default 60,000. */
  readonly compactionGraceMs?: number;
  /** Default: made of the clock and a count, so that two stores differ. Give one to make a run reproducible. */
  readonly clusterId?: string;
}

/**
 * - `refused`: nothing is stored, `APPEND_REFUSED`.
 * - `unknown-stored`: stored, `APPEND_UNKNOWN`.
 * - `unknown-lost`: not stored, `APPEND_UNKNOWN`.
 */
export type AppendFault = 'refused' | 'unknown-stored' | 'unknown-lost';

/** For tests: what time, an operator or a fault would do to the log. */
export interface MemoryControls {
  /** What lies before `offset` is gone, as by retention. */
  evictBefore(ref: PartitionRef, offset: Offset): void;
  /** What lies at or above `end` is lost, and its offsets are given again. */
  truncate(ref: PartitionRef, end: Offset): void;
  /** The topic is deleted and made anew, empty. */
  recreate(topic: Topic): void;
  /** `inbound`, `events` and `sessions` have so many partitions from now on. Throws `RangeError` on fewer than they have. */
  addPartitions(count: number): void;
  /** Removes superseded records at once, without grace; tombstones stay until they are older than retention. */
  compact(topic: Topic): void;
  /** How appends through any handle end from now on; `null`: as they should. */
  failAppends(mode: AppendFault | null): void;
  /** Removes a member as if its lease had run out. It comes back with its next renewal, if it still renews. */
  expireMember(group: string, member: string): void;
}

export interface MemoryStore {
  readonly clock: Clock;
  /** As of now. */
  readonly description: LogDescription;
  readonly count: PartitionCount;
  readonly leaseMs: number;
  readonly controls: MemoryControls;
  readonly appendFault: AppendFault | null;
  /** Throws `RangeError` when there is no such partition. */
  partition(ref: PartitionRef): MemoryPartition;
  group(name: string): MemoryGroup;
  /** True if so many more bytes fit under the size cap. */
  hasRoom(bytes: number): boolean;
  /** Retention and compaction, as far as they are due. Called by each operation, so that no timer is needed. */
  sweep(ref: PartitionRef): void;
}

/** Records of a compacted partition between two compactions. */
const COMPACT_EVERY = 4096;
let stores = 0;

export function createMemoryStore(options: MemoryStoreOptions): MemoryStore {
  const { clock } = options;
  const first = options.partitions ?? 4;
  if (!Number.isInteger(first) || first < 1) throw new RangeError('partitions must be 1 or more');
  const count = new PartitionCount(first);
  const graceMs = options.compactionGraceMs ?? 60_000;
  const leaseMs = options.leaseMs ?? 3000;
  const description: LogDescription = {
    clusterId: options.clusterId ?? `memory-${clock.wallMs().toString(36)}-${(++stores).toString(36)}`,
    driver: 'memory',
    get partitions() {
      return count.known();
    },
    maxRecordBytes: options.maxRecordBytes ?? DEFAULT_MAX_RECORD_BYTES,
    retentionMs: options.retentionMs ?? 24 * 3600_000,
  };
  const topics = new Map<Topic, MemoryPartition[]>(
    TOPICS.map((topic) => [topic, Array.from({ length: partitionCount(topic, first) }, () => new MemoryPartition())]),
  );
  const compactAt = new Map<MemoryPartition, number>();
  const groups = new Map<string, MemoryGroup>();
  let appendFault: AppendFault | null = null;

  const partition = (ref: PartitionRef): MemoryPartition => {
    checkRef(ref, count.known());
    return itemAt(topics.get(ref.topic) ?? [], ref.partition);
  };
  const group = (name: string): MemoryGroup => {
    const known = groups.get(name) ?? new MemoryGroup(clock, () => count.known(), leaseMs);
    groups.set(name, known);
    return known;
  };
  return {
    clock,
    description,
    count,
    leaseMs,
    partition,
    group,
    get appendFault() {
      return appendFault;
    },
    hasRoom(bytes) {
      if (options.maxBytes === undefined) return true;
      let held = bytes;
      for (const parts of topics.values()) for (const part of parts) held += part.bytes;
      return held <= options.maxBytes;
    },
    sweep(ref) {
      const part = partition(ref);
      const oldestMs = clock.wallMs() - description.retentionMs;
      if (!isCompacted(ref.topic)) {
        part.evictOlderThan(oldestMs);
        return;
      }
      if (part.count < (compactAt.get(part) ?? COMPACT_EVERY)) return;
      part.compact(clock.wallMs() - graceMs, oldestMs);
      compactAt.set(part, part.count + COMPACT_EVERY);
    },
    controls: {
      evictBefore(ref, offset) {
        partition(ref).evictBefore(offset);
      },
      truncate(ref, end) {
        partition(ref).truncate(end);
      },
      recreate(topic) {
        for (const part of topics.get(topic) ?? []) part.truncate(0);
      },
      addPartitions(wanted) {
        if (!Number.isInteger(wanted) || wanted < count.known())
          throw new RangeError(`there are ${count.known()} partitions: ${wanted} is no growth`);
        for (const [topic, parts] of topics)
          while (parts.length < partitionCount(topic, wanted)) parts.push(new MemoryPartition());
        count.learn(wanted);
      },
      compact(topic) {
        for (const part of topics.get(topic) ?? []) part.compact(Infinity, clock.wallMs() - description.retentionMs);
      },
      failAppends(mode) {
        appendFault = mode;
      },
      expireMember(name, member) {
        group(name).leave(member);
      },
    },
  };
}
