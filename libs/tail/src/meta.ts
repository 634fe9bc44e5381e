/** The state that all processes share through `meta`: the epoch in force, where to begin reading, and who is alive. SPEC: TAIL-EPOCH, TAIL-ALIVE, TAIL-HINTS, TAIL-MARKS. */
import { foldEpoch, joinMarks } from '@throughline/history';
import { META, hasLogCode, openView } from '@throughline/log';
import type { Clock, Log, PartitionRef, Random } from '@throughline/log';
import {
  EPOCH_LENGTH,
  formatHistoryMark,
  makeEpoch,
  makeRecord,
  META_KEY,
  META_PREFIX,
  readCheckpointHint,
  readEpochRecord,
  readHistoryMark,
  readWorkerRecord,
} from '@throughline/protocol';
import type {
  CheckpointHint,
  Epoch,
  EpochRecord,
  HistoryMark,
  LogRecord,
  Partition,
  WorkerRecord,
} from '@throughline/protocol';

interface SeenWorker {
  readonly record: WorkerRecord;
  /** When this process saw its newest heartbeat, on its own clock. */
  readonly seenMonoMs: number;
}

export interface MetaOptions {
  readonly log: Log;
  readonly clock: Clock;
  onError?(error: unknown): void;
}

const MAX_PROPOSALS = 3;

export class Meta {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #workers = new Map<string, SeenWorker>();
  readonly #hints = new Map<string, CheckpointHint>();
  readonly #listeners = new Set<(epoch: Epoch) => void>();
  readonly #changes = new Set<() => void>();
  readonly #view;
  readonly #marks = new Map<string, HistoryMark>();
  /** By token, in the order in which they came into force. */
  readonly #epochs = new Map<Epoch, EpochRecord>();
  #epoch: Epoch | null = null;

  constructor(options: MetaOptions) {
    this.#log = options.log;
    this.#clock = options.clock;
    this.#view = openView({
      log: options.log,
      clock: options.clock,
      of: META,
      apply: (key, record) => {
        this.#apply(key, record);
      },
      ...(options.onError === undefined ? {} : { onError: options.onError }),
    });
  }

  epoch(): Epoch | null {
    return this.#epoch;
  }

  /** Whether `epoch` was in force once and is no more. One that is neither this nor in force may be newer than this view. */
  isFormer(epoch: Epoch): boolean {
    return epoch !== this.#epoch && this.#epochs.has(epoch);
  }

  /** All epochs that ever were in force, oldest first: the last one is in force. */
  epochs(): readonly EpochRecord[] {
    return [...this.#epochs.values()];
  }

  /** How far the history of a partition of `inbound` or `events` has come in this epoch, by what was told here; `null` if nothing was. */
  mark(epoch: Epoch, { topic, partition }: PartitionRef): HistoryMark | null {
    const told = this.#marks.get(META_KEY.mark(epoch, topic, partition)) ?? null;
    const hint = topic === 'events' ? this.hint(epoch, partition) : null;
    // A checkpoint is told of only after it was read.
    return hint === null ? told : joinMarks(told, { end: hint.offset + 1, anchor: null });
  }

  /** Appends marks, in one append. Errors: those of `Log.append`. */
  async tellMarks(epoch: Epoch, marks: readonly (readonly [of: PartitionRef, mark: HistoryMark])[]): Promise<void> {
    if (marks.length === 0) return;
    const records = marks.map(([{ topic, partition }, mark]) =>
      makeRecord('mark', META_KEY.mark(epoch, topic, partition), formatHistoryMark(mark), {}),
    );
    await this.#log.append(META, records);
  }

  /** Where a reader of `events[partition]` may begin in this epoch. */
  hint(epoch: Epoch, partition: Partition): CheckpointHint | null {
    return this.#hints.get(META_KEY.checkpoint(epoch, partition)) ?? null;
  }

  /** Whether a heartbeat of `worker` was seen within `withinMs`. */
  isAlive(worker: string, withinMs: number): boolean {
    const seen = this.#workers.get(worker);
    return seen !== undefined && this.#clock.monoMs() - seen.seenMonoMs <= withinMs;
  }

  /** Partitions with a living owner that takes new sessions. */
  livePartitions(epoch: Epoch, withinMs: number): readonly Partition[] {
    const now = this.#clock.monoMs();
    const partitions = new Set<Partition>();
    for (const [name, { record, seenMonoMs }] of this.#workers) {
      if (now - seenMonoMs > withinMs * 100) this.#workers.delete(name);
      else if (now - seenMonoMs <= withinMs && !record.leaving && record.epoch === epoch)
        for (const partition of record.partitions) partitions.add(partition);
    }
    return [...partitions].sort((a, b) => a - b);
  }

  /** Calls `listener` whenever the epoch changes; returns the way to stop it. */
  onEpoch(listener: (epoch: Epoch) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls `listener` after each record of `meta`; returns the way to stop it. */
  onChange(listener: () => void): () => void {
    this.#changes.add(listener);
    return () => this.#changes.delete(listener);
  }

  sync(signal?: AbortSignal): Promise<void> {
    return this.#view.sync(signal);
  }

  close(): Promise<void> {
    return this.#view.close();
  }

  /**
   * The epoch in force, made if there is none yet. Of several processes that make one at once the first in the log
   * wins; an append of unknown outcome is looked for in the log. Errors: those of `Log.append`.
   */
  async ensureEpoch(random: Random, signal?: AbortSignal): Promise<Epoch> {
    await this.sync(signal);
    for (let attempt = 1; this.#epoch === null; attempt++) {
      try {
        await this.proposeEpoch(random, null, 'first start');
      } catch (error) {
        // A second candidate does no harm: it is void if the first is there after all.
        if (!hasLogCode(error, 'APPEND_UNKNOWN') || attempt >= MAX_PROPOSALS) throw error;
      }
      await this.sync(signal);
    }
    return this.#epoch;
  }

  /** Appends a candidate that follows `previous`; it counts if that is in force at its place. Resolves with its name. */
  async proposeEpoch(random: Random, previous: Epoch | null, reason: string): Promise<Epoch> {
    const token = makeEpoch(random.bytes(EPOCH_LENGTH));
    const { clusterId } = this.#log.description;
    const value = JSON.stringify({ token, previous, clusterId, reason, atMs: this.#clock.wallMs() });
    await this.#log.append(META, [makeRecord('epoch', META_KEY.epoch(token), value, {})]);
    return token;
  }

  #apply(key: string, record: LogRecord): void {
    if (key.startsWith(META_PREFIX.epoch)) {
      const candidate = readEpochRecord(record);
      const epoch =
        candidate === null ? this.#epoch : foldEpoch(this.#epoch, candidate, this.#log.description.clusterId);
      if (candidate !== null && epoch !== null && epoch !== this.#epoch) {
        this.#epochs.set(epoch, candidate);
        this.#epoch = epoch;
        for (const listener of this.#listeners) listener(epoch);
      }
    } else if (key.startsWith(META_PREFIX.mark)) {
      // A late write of a former owner takes nothing back.
      const mark = joinMarks(this.#marks.get(key) ?? null, readHistoryMark(record));
      if (mark !== null) this.#marks.set(key, mark);
    } else if (key.startsWith(META_PREFIX.checkpoint)) {
      const hint = readCheckpointHint(record);
      if (hint !== null && tellsMore(hint, this.#hints.get(key))) this.#hints.set(key, hint);
    } else if (key.startsWith(META_PREFIX.worker)) {
      const worker = readWorkerRecord(record);
      if (worker === null) this.#workers.delete(key.slice(META_PREFIX.worker.length));
      else this.#workers.set(worker.worker, { record: worker, seenMonoMs: this.#clock.monoMs() });
    }
    for (const listener of this.#changes) listener();
  }
}

/** A late write of a former owner names an older place, or fewer claims: as valid, only further back. */
function tellsMore(hint: CheckpointHint, known: CheckpointHint | undefined): boolean {
  if (known === undefined || hint.offset > known.offset) return true;
  return hint.offset === known.offset && (hint.claims.at(-1) ?? -1) >= (known.claims.at(-1) ?? -1);
}
