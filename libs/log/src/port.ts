/**
 * The log port. Small on purpose: a fourth driver is a new folder that passes the conformance suite.
 *
 * Ordering: a partition is one sequence; offsets rise, each given once, never reused, also across restarts, eviction
 * and processes. They may have holes (compaction, transaction markers), so a reader goes on from `next`, never from
 * `last + 1`. Delivery: an append that resolved is durable and is returned by every later read that covers it.
 */
import type { LogRecord, Offset, Partition, RecordInput, Topic } from '@throughline/protocol';

export interface LogDescription {
  /** Names this very log: another file, cluster or re-created store has another id. */
  readonly clusterId: string;
  readonly driver: 'memory' | 'sqlite' | 'kafka';
  /** Partitions of `inbound`, `events` and `sessions`; `meta` and `dead-letter` have one. Of a living log only this changes, and only upwards. */
  readonly partitions: number;
  /** Largest record (key + value + headers, bytes) that an append accepts. */
  readonly maxRecordBytes: number;
  /** How long `events` are held at least, unless a size cap evicts them before. Milliseconds. */
  readonly retentionMs: number;
}

export interface Appended {
  /** One offset a record, in the order given; consecutive. */
  readonly offsets: readonly Offset[];
  readonly timestampMs: number;
}

export interface Bounds {
  /** First offset still held (equal to `end` when nothing is). */
  readonly start: Offset;
  /** Offset that the next acknowledged append gets. */
  readonly end: Offset;
}

export interface ReadBatch {
  readonly records: readonly LogRecord[];
  /** Where to go on reading. Above the last record's offset; may be further where the log has holes. */
  readonly next: Offset;
  /** Bounds at the time of this read; `end` never below `next`. */
  readonly bounds: Bounds;
  /**
   * Names the way on which the answer came. Another name than at the read before: something failed or moved in between,
   * also within this call, and what was read before may be gone. Absent where that cannot be.
   */
  readonly source?: string;
  /**
   * How often this handle has seen that the topic was made anew under its name: more often than at the read before, and
   * nothing that was read before is there. Absent where that cannot be seen.
   */
  readonly madeAnew?: number;
}

export interface ReadOptions {
  /** At least one record is returned even if it is larger. Default 1 MiB. */
  readonly maxBytes?: number;
  /** Wait for records at most this long when there are none at the position; then return an empty batch. Default: 0, do not wait. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** One partition of one topic. */
export interface PartitionRef {
  readonly topic: Topic;
  readonly partition: Partition;
}

/** The one partition of the state that all processes share. */
export const META = { topic: 'meta', partition: 0 } as const satisfies PartitionRef;

/** The group of the workers: its members divide the partitions of `inbound`. */
export const WORKER_GROUP = 'workers';

/** The one partition of what nobody can read. */
export const DEAD_LETTER = { topic: 'dead-letter', partition: 0 } as const satisfies PartitionRef;

export interface Membership {
  readonly member: string;
  /** The partitions assigned now. */
  assigned(): readonly Partition[];
  /**
   * Says which offset of `inbound[partition]` is the next that needs work: the lag that Kafka's tools show is what is
   * left to do. Advisory: nothing is decided by it, and a lower offset than before is taken.
   * Errors: `LOG_UNAVAILABLE` (also while the group changes, or if the partition is not assigned to this member), `CLOSED`.
   */
  commit(partition: Partition, offset: Offset): Promise<void>;
  /** Leaves the group at once, so that others get the partitions. Idempotent. */
  leave(): Promise<void>;
}

export interface JoinOptions {
  readonly group: string;
  /** Unique to this process's life; never reused. */
  readonly member: string;
  /**
   * Called with the whole assignment whenever it changes. Advisory: two members may believe for a while that they own
   * the same partition; claims in the log decide.
   */
  onChange(assigned: readonly Partition[]): void;
}

export interface Log {
  /** As this handle knows it: partitions that are added are known here within seconds if anybody listens or is a member of a group, and after {@link describe}. */
  readonly description: LogDescription;
  /** Asks the log what it is now. Errors: `LOG_UNAVAILABLE`, `CLOSED`. */
  describe(): Promise<LogDescription>;
  /** Calls back whenever `description.partitions` has become more. Returns the way to stop it. SPEC: LOG-GROWN. */
  onGrown(listener: () => void): () => void;
  /**
   * Appends records to one partition, all or none, consecutive. Resolves when they are durable.
   * Errors: `APPEND_REFUSED` (not in the log), `APPEND_UNKNOWN` (may be), `CLOSED`.
   * Concurrent appends of one process to one partition keep the order of the calls.
   */
  append(to: PartitionRef, records: readonly RecordInput[]): Promise<Appended>;
  /**
   * Reads from a position: one call for catch-up and for tail (with `waitMs`).
   * Errors: `OFFSET_OUT_OF_RANGE` (below the start or above the end), `ABORTED`, `LOG_UNAVAILABLE`, `CLOSED`, and on
   * drivers with access control `NOT_AUTHENTICATED`, `NOT_AUTHORIZED`; an append is then refused with that reason.
   */
  read(from: PartitionRef, position: Offset, options?: ReadOptions): Promise<ReadBatch>;
  /** Errors: `LOG_UNAVAILABLE`, `CLOSED`. */
  bounds(of: PartitionRef): Promise<Bounds>;
  /** Joins a group that divides the partitions of `inbound`. Sticky: a change moves as few partitions as it can. */
  join(options: JoinOptions): Promise<Membership>;
  /** What members of the group committed last, by partition; partitions of which nothing was committed are left out. Errors: `LOG_UNAVAILABLE`, `CLOSED`. */
  committed(group: string): Promise<ReadonlyMap<Partition, Offset>>;
  /** Frees everything; pending reads reject with `CLOSED`. Idempotent. */
  close(): Promise<void>;
}
