/** The state that all processes share through `meta`: the epoch in force, where to begin reading, and who is alive. SPEC: TAIL-EPOCH, TAIL-ALIVE, TAIL-HINTS, TAIL-MARKS, TAIL-META-LOST. */
import { foldEpoch, joinMarks } from '@throughline/history';
import { META, hasLogCode, openView, sleep } from '@throughline/log';
import type { Clock, Log, PartitionRef, Random, ViewFinding } from '@throughline/log';
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
  /** A read failed, and is tried again. */
  onError?(error: unknown, of: PartitionRef): void;
  /** A read was answered. */
  onAnswer?(of: PartitionRef): void;
}

const MAX_PROPOSALS = 3;
const SYNC_AGAIN_MS = 250;
const MOST_HEARD = 1000;

/** What `meta` says, folded from its start. */
interface Folded {
  readonly workers: Map<string, SeenWorker>;
  readonly hints: Map<string, CheckpointHint>;
  readonly marks: Map<string, HistoryMark>;
  /** By token, in the order in which they came into force. */
  epochs: Map<Epoch, EpochRecord>;
  epoch: Epoch | null;
}

function foldNothing(): Folded {
  return { workers: new Map(), hints: new Map(), marks: new Map(), epochs: new Map(), epoch: null };
}

export class Meta {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #listeners = new Set<(epoch: Epoch) => void>();
  readonly #changes = new Set<() => void>();
  readonly #findings = new Set<(finding: ViewFinding) => void>();
  readonly #view;
  #folded = foldNothing();
  /** Folded anew, behind what is told, since `meta` turned out to be another than was read. */
  #anew: Folded | null = null;
  #epoch: Epoch | null = null;
  /** Epochs that claims or heartbeats name and that `meta`, read again after that, does not hold. */
  readonly #heard = new Set<Epoch>();

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
      onFinding: (finding) => {
        this.#take(finding);
      },
      onError: (error) => options.onError?.(error, META),
      onAnswer: () => options.onAnswer?.(META),
    });
  }

  /** Stays what it was while `meta` has lost it, until another is in force. */
  epoch(): Epoch | null {
    return this.#epoch;
  }

  /** Whether `meta` no longer says that {@link epoch} is in force: it was made anew, or lost its end. */
  hasLostEpoch(): boolean {
    return this.#epoch !== this.#folded.epoch;
  }

  /** Whether `epoch` was in force once and is no more. One that is neither this nor in force may be newer than this view. */
  isFormer(epoch: Epoch): boolean {
    return epoch !== this.#epoch && this.#folded.epochs.has(epoch);
  }

  /** All epochs that ever were in force, oldest first: the last one is in force. */
  epochs(): readonly EpochRecord[] {
    return [...this.#folded.epochs.values()];
  }

  /** How far the history of a partition of `inbound` or `events` has come in this epoch, by what was told here; `null` if nothing was. */
  mark(epoch: Epoch, { topic, partition }: PartitionRef): HistoryMark | null {
    const told = this.#folded.marks.get(META_KEY.mark(epoch, topic, partition)) ?? null;
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
    return this.#folded.hints.get(META_KEY.checkpoint(epoch, partition)) ?? null;
  }

  /** Whether a heartbeat of `worker` was seen within `withinMs`. */
  isAlive(worker: string, withinMs: number): boolean {
    const seenMs = this.seenMs(worker);
    return seenMs !== null && this.#clock.monoMs() - seenMs <= withinMs;
  }

  /** When the newest heartbeat of `worker` was read, by the monotonic clock; `null` if none was, or its last one said that it ended. */
  seenMs(worker: string): number | null {
    return this.#folded.workers.get(worker)?.seenMonoMs ?? null;
  }

  /** Partitions with a living owner that takes new sessions. */
  livePartitions(epoch: Epoch, withinMs: number): readonly Partition[] {
    const now = this.#clock.monoMs();
    const partitions = new Set<Partition>();
    for (const [name, { record, seenMonoMs }] of this.#folded.workers) {
      if (now - seenMonoMs > withinMs * 100) this.#folded.workers.delete(name);
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

  /** Calls `listener` when something is found out about `meta` itself; returns the way to stop it. */
  onFinding(listener: (finding: ViewFinding) => void): () => void {
    this.#findings.add(listener);
    return () => this.#findings.delete(listener);
  }

  sync(signal?: AbortSignal): Promise<void> {
    return this.#view.sync(signal);
  }

  /**
   * A claim names the epoch `claimed`. If this view does not know it, another `meta` than was read may hold it: all of it is
   * read again first. Resolves with whether `own` is still in force, or `false` when `signal` fires; never rejects. SPEC: TAIL-EPOCH-HEARD.
   */
  async isStillInForce(own: Epoch, claimed: Epoch, signal: AbortSignal): Promise<boolean> {
    if (this.#isUnheard(claimed)) {
      this.#view.reread();
      while (!signal.aborted && !(await this.#syncs(signal))) await sleep(this.#clock, SYNC_AGAIN_MS, signal);
      this.#hear(claimed);
    }
    return !signal.aborted && this.#epoch === own && !this.hasLostEpoch();
  }

  #isUnheard(epoch: Epoch): boolean {
    return !this.#folded.epochs.has(epoch) && this.#anew?.epochs.has(epoch) !== true && !this.#heard.has(epoch);
  }

  /** One that is nobody's stays nobody's. The set is bounded: a log that was restored may tell of many. */
  #hear(epoch: Epoch): void {
    if (this.#heard.size >= MOST_HEARD) this.#heard.clear();
    this.#heard.add(epoch);
  }

  async #syncs(signal: AbortSignal): Promise<boolean> {
    try {
      await this.sync(signal);
      return true;
    } catch {
      // Whoever reads `meta` says that it does not answer.
      return false;
    }
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

  /** Appends a candidate that follows what `meta` says is in force. Errors: those of `Log.append`. */
  async proposeNext(random: Random, reason: string): Promise<Epoch> {
    return await this.proposeEpoch(random, this.#folded.epoch, reason);
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
    const folded = this.#anew ?? this.#folded;
    if (key.startsWith(META_PREFIX.epoch)) {
      const candidate = readEpochRecord(record);
      const epoch =
        candidate === null ? folded.epoch : foldEpoch(folded.epoch, candidate, this.#log.description.clusterId);
      if (candidate !== null && epoch !== null && epoch !== folded.epoch) {
        folded.epochs.set(epoch, candidate);
        folded.epoch = epoch;
        if (folded === this.#folded) this.#setEpoch(epoch);
      }
    } else if (key.startsWith(META_PREFIX.mark)) {
      // A late write of a former owner takes nothing back.
      const mark = joinMarks(folded.marks.get(key) ?? null, readHistoryMark(record));
      if (mark !== null) folded.marks.set(key, mark);
    } else if (key.startsWith(META_PREFIX.checkpoint)) {
      const hint = readCheckpointHint(record);
      if (hint !== null && tellsMore(hint, folded.hints.get(key))) folded.hints.set(key, hint);
    } else if (key.startsWith(META_PREFIX.worker)) {
      const worker = readWorkerRecord(record);
      if (worker === null) folded.workers.delete(key.slice(META_PREFIX.worker.length));
      else folded.workers.set(worker.worker, { record: worker, seenMonoMs: this.#seenMs(worker) });
      // Its epoch came into force where this view has not read: `meta` was made anew, and has grown past it.
      if (worker !== null && worker.epoch !== '' && this.#isUnheard(worker.epoch)) {
        this.#hear(worker.epoch);
        this.#view.reread();
      }
    }
    for (const listener of this.#changes) listener();
  }

  /** One that is read again is no younger for it. */
  #seenMs({ worker, beat }: WorkerRecord): number {
    const known = this.#folded.workers.get(worker);
    return this.#anew !== null && known?.record.beat === beat ? known.seenMonoMs : this.#clock.monoMs();
  }

  #take(finding: ViewFinding): void {
    if (finding === 'lost' || finding === 'again') this.#anew = foldNothing();
    else if (finding === 'rebuilt' && this.#anew !== null) this.#replace(this.#anew);
    for (const listener of this.#findings) listener(finding);
  }

  /** What is told changes at once, and only by what is new: an epoch that was known before does not come back. */
  #replace(anew: Folded): void {
    const former = this.#folded;
    const known = new Map([...former.epochs].filter(([token]) => !anew.epochs.has(token)));
    anew.epochs = new Map([...known, ...anew.epochs]);
    this.#folded = anew;
    this.#anew = null;
    if (anew.epoch !== null && !former.epochs.has(anew.epoch)) this.#setEpoch(anew.epoch);
    for (const listener of this.#changes) listener();
  }

  #setEpoch(epoch: Epoch): void {
    this.#epoch = epoch;
    for (const listener of this.#listeners) listener(epoch);
  }
}

/** A late write of a former owner names an older place, or fewer claims: as valid, only further back. */
function tellsMore(hint: CheckpointHint, known: CheckpointHint | undefined): boolean {
  if (known === undefined || hint.offset > known.offset) return true;
  return hint.offset === known.offset && (hint.claims.at(-1) ?? -1) >= (known.claims.at(-1) ?? -1);
}
