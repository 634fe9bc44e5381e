/**
 * What every process knows of sessions, from the compacted topic `sessions`: negotiated revision, and which have ended.
 * Held for one maximum life, then forgotten. SPEC: TAIL-SESSIONS, TAIL-ENDED, TAIL-SWEEP, TAIL-SESSIONS-LOST.
 */
import { openView } from '@throughline/log';
import type { Clock, Log, PartitionRef, View, ViewFinding } from '@throughline/log';
import { makeRecord, readSessionEnd, readSessionRecord, sessionEndKey } from '@throughline/protocol';
import type {
  LogRecord,
  Offset,
  Partition,
  SessionEndReason,
  SessionEndRecord,
  SessionRecord,
} from '@throughline/protocol';

export interface SessionEntry {
  /** `null` until its record was read (the end may be known first), and while the topic holds one that cannot be read. */
  readonly record: SessionRecord | null;
  readonly end: SessionEndRecord | null;
}

interface HeldEntry extends SessionEntry {
  /** Offset of the record that `record` was read from or appended at: the newest wins, whoever tells of it first. */
  readonly recordAt: Offset;
}

export interface SessionDirectoryOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** To begin with; {@link SessionDirectory.follow} adds more. */
  readonly partitions: readonly Partition[];
  /** Milliseconds after which an ended session is forgotten. */
  readonly maxLifeMs: number;
  /** Keep whole records (workers) or only the revision (gateways, which may see millions). */
  readonly keepRecords: boolean;
  /** Something was found out about the topic itself: see `ViewOptions`. */
  onFinding?(finding: ViewFinding, partition: Partition, readMs: number): void;
  /** A read failed, and is tried again. */
  onError?(error: unknown, of: PartitionRef): void;
  /** A read was answered. */
  onAnswer?(of: PartitionRef): void;
}

const END_SUFFIX = '/end';
const UNKNOWN_REQUEST = { jsonrpc: '2.0', id: 0, method: 'initialize' } as const;

export class SessionDirectory {
  readonly #options: SessionDirectoryOptions;
  readonly #entries = new Map<Partition, Map<string, HeldEntry>>();
  readonly #views = new Map<Partition, View>();

  constructor(options: SessionDirectoryOptions) {
    this.#options = options;
    for (const partition of options.partitions) this.follow(partition);
  }

  /** Reads one more partition; no effect if it does already. */
  follow(partition: Partition): void {
    if (this.#views.has(partition)) return;
    const options = this.#options;
    const of = { topic: 'sessions', partition } as const;
    this.#entries.set(partition, new Map());
    this.#views.set(
      partition,
      openView({
        log: options.log,
        clock: options.clock,
        of,
        apply: (key, record) => {
          this.#apply(partition, key, record);
        },
        onFinding: (finding, readMs) => {
          if (finding === 'lost') this.#forgetLiving(partition);
          options.onFinding?.(finding, partition, readMs);
        },
        onError: (error) => options.onError?.(error, of),
        onAnswer: () => options.onAnswer?.(of),
      }),
    );
  }

  get(partition: Partition, key: string): SessionEntry | undefined {
    return this.#entries.get(partition)?.get(key);
  }

  hasEnded(partition: Partition, key: string): boolean {
    return (this.get(partition, key)?.end ?? null) !== null;
  }

  /** Sessions of a partition that have a record and no end. */
  living(partition: Partition): readonly (readonly [string, SessionRecord])[] {
    const living: (readonly [string, SessionRecord])[] = [];
    for (const [key, { record, end }] of this.#entries.get(partition) ?? [])
      if (record !== null && end === null) living.push([key, record]);
    return living;
  }

  /** Sessions of a partition that ended before `wallMs`, at most `limit`. */
  endedBefore(partition: Partition, wallMs: number, limit: number): readonly string[] {
    const keys: string[] = [];
    for (const [key, { end }] of this.#entries.get(partition) ?? []) {
      if (keys.length >= limit) break;
      if (end !== null && end.atMs < wallMs) keys.push(key);
    }
    return keys;
  }

  /** Tombstones what is held of sessions. Errors: those of `Log.append`. */
  async forget(partition: Partition, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const tombstones = keys.flatMap((key) => [
      makeRecord('session', key, null, {}),
      makeRecord('session.end', sessionEndKey(key), null, {}),
    ]);
    await this.#options.log.append({ topic: 'sessions', partition }, tombstones);
    for (const key of keys) this.#entries.get(partition)?.delete(key);
  }

  /** Appends the record of a session; the directory shows it at once. Errors: those of `Log.append`. */
  async put(partition: Partition, key: string, record: SessionRecord): Promise<void> {
    const { offsets } = await this.#options.log.append({ topic: 'sessions', partition }, [
      makeRecord('session', key, JSON.stringify(record), { server: record.server }),
    ]);
    this.#learn(partition, key, this.#trim(record), offsets[0] ?? 0);
  }

  /**
   * Appends the end of a session, a record of its own that nothing overwrites; the directory shows it at once. Does
   * nothing if an end is known. Errors: those of `Log.append`.
   */
  async end(partition: Partition, key: string, reason: SessionEndReason): Promise<void> {
    if (this.hasEnded(partition, key)) return;
    const end: SessionEndRecord = { reason, atMs: this.#options.clock.wallMs() };
    await this.#options.log.append({ topic: 'sessions', partition }, [
      makeRecord('session.end', sessionEndKey(key), JSON.stringify(end), {}),
    ]);
    this.#learnEnd(partition, key, end);
  }

  /** Resolves when everything acknowledged before the call is known. */
  async sync(signal?: AbortSignal): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => view.sync(signal)));
  }

  async syncPartition(partition: Partition, signal?: AbortSignal): Promise<void> {
    await this.#views.get(partition)?.sync(signal);
  }

  /** The topic may be another than was read: it is looked at before {@link sync} resolves. */
  doubt(): void {
    for (const view of this.#views.values()) view.doubt();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => view.close()));
  }

  /**
   * Forgets sessions that ended more than one maximum life ago: their ids are refused by age before they are looked up.
   * Without `keepRecords` also those that began so long ago; with it they stay, for a worker to end them.
   */
  sweep(): void {
    const { clock, maxLifeMs, keepRecords } = this.#options;
    const before = clock.wallMs() - maxLifeMs;
    for (const entries of this.#entries.values()) {
      for (const [key, { record, end }] of entries) {
        const sinceMs = end?.atMs ?? (keepRecords ? null : record?.createdMs) ?? Infinity;
        if (sinceMs < before) entries.delete(key);
      }
    }
  }

  #apply(partition: Partition, key: string, record: LogRecord): void {
    if (key.endsWith(END_SUFFIX)) {
      const session = key.slice(0, -END_SUFFIX.length);
      if (record.value === null) {
        this.#entries.get(partition)?.delete(session);
        return;
      }
      const end = readSessionEnd(record) ?? { reason: 'unknown', atMs: record.timestampMs };
      this.#learnEnd(partition, session, end);
      return;
    }
    const session = readSessionRecord(record);
    // What cannot be read hides what was known, so that its owner writes it anew; a tombstone forgets it.
    if (session === null && record.value !== null && this.#hide(partition, key, record.offset)) return;
    this.#learn(partition, key, session === null ? null : this.#trim(session), record.offset);
  }

  /** What is no longer in the log is not known any more; but what has ended does not live again. */
  #forgetLiving(partition: Partition): void {
    const entries = this.#entries.get(partition);
    for (const [key, { end }] of entries ?? []) {
      if (end === null) entries?.delete(key);
      else entries?.set(key, { record: null, end, recordAt: -1 });
    }
  }

  #learn(partition: Partition, key: string, record: SessionRecord | null, recordAt: Offset): void {
    const entries = this.#entries.get(partition);
    const known = entries?.get(key);
    if (known !== undefined && recordAt < known.recordAt) return;
    const end = known?.end ?? null;
    if (record === null && end === null) entries?.delete(key);
    else entries?.set(key, { record, end, recordAt });
  }

  /** `false` if nothing was known. */
  #hide(partition: Partition, key: string, recordAt: Offset): boolean {
    const entries = this.#entries.get(partition);
    const known = entries?.get(key);
    if (known !== undefined && recordAt >= known.recordAt)
      entries?.set(key, { record: null, end: known.end, recordAt });
    return known !== undefined;
  }

  /** The first end counts. */
  #learnEnd(partition: Partition, key: string, end: SessionEndRecord): void {
    const entries = this.#entries.get(partition);
    const known = entries?.get(key);
    if (known !== undefined && known.end !== null) return;
    entries?.set(key, { record: known?.record ?? null, end, recordAt: known?.recordAt ?? -1 });
  }

  #trim(record: SessionRecord): SessionRecord {
    return this.#options.keepRecords
      ? record
      : { ...record, initialize: UNKNOWN_REQUEST, subscriptions: [], principal: '' };
  }
}
