/**
 * Watches whether the history of `inbound` and `events` is still the one of the epoch in force. Suspicion (an end behind
 * what was acknowledged, a record that differs) makes nothing but a probe: an append. Proof is an ack at or below what was
 * acknowledged or read in this epoch, or a record that still differs on the leader that has just acknowledged. On proof a
 * new epoch is proposed, and nothing is to be served until it is in force. The compacted topics are watched by the views of
 * them, which prove a loss by themselves; what that means for the epoch is decided here. SPEC: GRD-*.
 */
import { compareWithMark, joinMarks, provesBreak, worstFinding } from '@throughline/history';
import type { MarkFinding } from '@throughline/history';
import { abortable, anchorOf, deadline, errorText, LogError, META, sleep } from '@throughline/log';
import type { Appended, Bounds, Clock, Log, PartitionRef, Random, ViewFinding } from '@throughline/log';
import { equalBytes, INBOUND_TYPE, EVENT_TYPE, makeRecord } from '@throughline/protocol';
import type { Epoch, HistoryMark, LogRecord, Offset, Partition, RecordInput, Topic } from '@throughline/protocol';
import type { Meta } from './meta.ts';
import { partitionName } from './partition-name.ts';

export interface HistoryGuardOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly meta: Pick<Meta, 'epoch' | 'hasLostEpoch' | 'proposeNext' | 'mark' | 'onEpoch' | 'onFinding'>;
  /** What is to be told to operators. */
  readonly logger: {
    warn(event: string, fields?: Readonly<Record<string, unknown>>): void;
    error(event: string, fields?: Readonly<Record<string, unknown>>): void;
  };
  onCount?(what: 'suspected' | 'proved', topic: Topic): void;
}

export type GuardedTopic = 'inbound' | 'events';

export interface GuardedRef extends PartitionRef {
  readonly topic: GuardedTopic;
}

/** What this process itself has read, or had acknowledged. */
interface Known {
  end: Offset;
  last: LogRecord | null;
  /** The newest that was acknowledged here, until it was read. */
  appended: { readonly offset: Offset; readonly record: RecordInput } | null;
}

/** What is known of a partition's two topics. `unknown`: not looked at in this epoch. */
type Trust = 'unknown' | 'checking' | 'holds' | 'doubt';

const TOPICS = ['events', 'inbound'] as const satisfies readonly GuardedTopic[];
const PROPOSE_AGAIN_MS = 1000;
/** Between a suspicion and the probe: a view that lags catches up by itself. */
const LAG_MS = 250;
const PROBE_AGAIN_MS = 1000;
const LOOK_MS = 5000;
/** Between two looks at a partition that is trusted. */
const LOOK_AGAIN_MS = 5000;
/** A larger record is not kept to be compared with. */
const MOST_KEPT_BYTES = 64 * 1024;

export class HistoryGuard {
  readonly #options: HistoryGuardOptions;
  readonly #known = new Map<string, Known>();
  readonly #trust = new Map<Partition, Trust>();
  readonly #lookedMs = new Map<Partition, number>();
  readonly #waiters = new Set<() => void>();
  readonly #stop = new AbortController();
  readonly #stopEpochs: () => void;
  readonly #stopFindings: () => void;
  /** Partitions of compacted topics that are not what was read of them, until that is clear. */
  readonly #unclear = new Set<string>();
  #epoch: Epoch;
  #epochSinceMs: number;
  #isBroken = false;

  /** To be made before whatever else listens to epochs, once one is in force. */
  constructor(options: HistoryGuardOptions) {
    this.#options = options;
    const epoch = options.meta.epoch();
    if (epoch === null) throw new TypeError('the guard needs an epoch in force');
    this.#epoch = epoch;
    // What this process has read is of this epoch, or was read before anything was served.
    this.#epochSinceMs = Number.NEGATIVE_INFINITY;
    this.#stopFindings = options.meta.onFinding((finding) => {
      this.noteView(META, finding, this.#epochSinceMs);
    });
    this.#stopEpochs = options.meta.onEpoch((next) => {
      // A new history begins: offsets of the former one say nothing about it.
      this.#epoch = next;
      this.#epochSinceMs = options.clock.monoMs();
      this.#isBroken = false;
      this.#known.clear();
      this.#trust.clear();
      this.#wake();
    });
  }

  /** The history of the epoch in force is proved to be broken. */
  isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * This process has read up to `last`, where the log ended at `end` or later.
   * @param epoch the one in which the read began: what was read of a former history says nothing about this one.
   */
  noteRead(epoch: Epoch, of: GuardedRef, last: LogRecord | null, end: Offset): void {
    if (epoch !== this.#epoch) return;
    const known = this.#knownOf(of);
    known.end = Math.max(known.end, end, (last?.offset ?? -1) + 1);
    if (last !== null && last.offset > (known.last?.offset ?? -1)) known.last = last;
  }

  /** What this process and the marks say together; `null` if nothing is known. */
  mark(of: GuardedRef): HistoryMark | null {
    return joinMarks(this.#options.meta.mark(this.#epoch, of), this.#ownMark(of));
  }

  #ownMark(of: GuardedRef): HistoryMark | null {
    const known = this.#known.get(partitionName(of));
    if (known === undefined) return null;
    const { end, last } = known;
    return { end, anchor: last === null ? null : anchorOf(last) };
  }

  /** `Log.append`, judged when its ack comes, however late. Errors: those of `Log.append`; `LOG_UNAVAILABLE` if its ack is proof, or there was proof before. */
  async append(to: GuardedRef, records: readonly RecordInput[]): Promise<Appended> {
    // It would follow a history that is over.
    if (this.#isBroken) throw new LogError('LOG_UNAVAILABLE', 'the history of the log broke');
    const epoch = this.#epoch;
    const highest = this.#endOf(to) - 1;
    const appended = await this.#options.log.append(to, records);
    const first = appended.offsets[0];
    if (first === undefined || epoch !== this.#epoch) return appended;
    if (provesBreak(first, highest)) {
      this.#break(to, epoch, `acknowledged ${first} at or below ${highest}`);
      throw new LogError('LOG_UNAVAILABLE', 'the history of the log broke');
    }
    const last = appended.offsets.at(-1) ?? first;
    this.noteRead(epoch, to, null, last + 1);
    this.#keep(to, last, records.at(-1));
    return appended;
  }

  /**
   * Has it looked whether the log still holds what this process had acknowledged: for one that waits, and hears nothing.
   * Only a partition that is trusted, and once in five seconds; what is found is told as any suspicion is.
   */
  lookAgain(partition: Partition): void {
    const now = this.#options.clock.monoMs();
    if (this.#trust.get(partition) !== 'holds' || now - (this.#lookedMs.get(partition) ?? -Infinity) < LOOK_AGAIN_MS)
      return;
    this.#lookedMs.set(partition, now);
    void this.#look(partition);
  }

  /**
   * A reader of this epoch stands at `position`, and the log ends before it or holds other records: a lagging view, or a
   * break. It is looked into; until that is done the partition is in doubt. Said again by a reader that stays in doubt.
   */
  suspect(epoch: Epoch, of: GuardedRef, position: Offset): void {
    this.noteRead(epoch, of, null, position);
    const trust = this.#trust.get(of.partition) ?? 'unknown';
    if (epoch !== this.#epoch || this.#isBroken || trust === 'doubt' || trust === 'checking') return;
    this.#setTrust(of.partition, 'doubt');
    void this.#check(of.partition);
  }

  /** Whether the log holds what is known of `inbound` and `events`; `false` at once while that is in doubt, and when `signal` fires. */
  async trusts(partition: Partition, signal: AbortSignal): Promise<boolean> {
    return this.#until(partition, signal, (trust) => (trust === 'holds' ? true : trust === 'doubt' ? false : null));
  }

  /** Resolves `true` when it holds; `false` when `signal` fires first. A broken history ends with its epoch. */
  async settled(partition: Partition, signal: AbortSignal): Promise<boolean> {
    return this.#until(partition, signal, (trust) => (trust === 'holds' ? true : null));
  }

  /** Whether a compacted topic is not what was read of it, and nothing says yet why. */
  isViewInDoubt(): boolean {
    return this.#unclear.size > 0;
  }

  /**
   * What a view found out about its partition of a compacted topic. A loss of `sessions`, and one of `meta` that took the
   * epoch in force, begins a new epoch: ends of sessions, and the name of their history, may be among what is gone.
   * @param readMs when the newest read began that the loss is about: one of a former epoch ended with that.
   */
  noteView(of: PartitionRef, finding: ViewFinding, readMs: number): void {
    const { topic, partition } = of;
    const { logger, onCount } = this.#options;
    const isUnclear = finding !== 'holds' && finding !== 'rebuilt';
    if (isUnclear) this.#unclear.add(partitionName(of));
    else this.#unclear.delete(partitionName(of));
    switch (finding) {
      case 'doubt':
        onCount?.('suspected', topic);
        logger.warn('a compacted topic is not what was read of it', { topic, partition });
        return;
      case 'again':
        logger.warn('a compacted topic is read again from its start: another epoch than is known was named', {
          topic,
          partition,
        });
        return;
      case 'holds':
        logger.warn('the history of the log holds', { topic, partition });
        return;
      case 'lost':
        logger.error('a compacted topic was made anew, or lost its end; it is read again from its start', {
          topic,
          partition,
        });
        if (topic === 'sessions' && readMs >= this.#epochSinceMs)
          this.#break(of, this.#epoch, 'made anew, or lost its end');
        return;
      case 'rebuilt':
        if (topic === 'meta' && this.#options.meta.hasLostEpoch())
          this.#break(of, this.#epoch, 'the epoch in force was lost');
    }
  }

  stop(): void {
    this.#stopEpochs();
    this.#stopFindings();
    this.#stop.abort();
    this.#wake();
  }

  async #until(partition: Partition, signal: AbortSignal, decide: (trust: Trust) => boolean | null): Promise<boolean> {
    for (;;) {
      if (signal.aborted || this.#stop.signal.aborted) return false;
      const trust = this.#isBroken ? 'doubt' : (this.#trust.get(partition) ?? 'unknown');
      const decision = decide(trust);
      if (decision !== null) return decision;
      if (trust === 'unknown') {
        this.#setTrust(partition, 'checking');
        void this.#check(partition);
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiters.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#waiters.add(wake);
        signal.addEventListener('abort', wake, { once: true });
      });
    }
  }

  #setTrust(partition: Partition, trust: Trust): void {
    this.#trust.set(partition, trust);
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiters]) wake();
  }

  /** Until both topics hold, or the epoch is over. Never rejects. */
  async #check(partition: Partition): Promise<void> {
    const epoch = this.#epoch;
    for (const topic of TOPICS) if (!(await this.#settle({ topic, partition }, epoch))) return;
    if (this.#isOver(epoch)) return;
    this.#setTrust(partition, 'holds');
  }

  /** Never rejects. */
  async #look(partition: Partition): Promise<void> {
    const epoch = this.#epoch;
    for (const topic of TOPICS) {
      const of = { topic, partition };
      // Whoever appends or reads says that the log does not answer.
      const finding = await this.#compare(of).catch(() => 'holds');
      if (finding === 'holds') continue;
      this.suspect(epoch, of, 0);
      return;
    }
  }

  #isOver(epoch: Epoch): boolean {
    return epoch !== this.#epoch || this.#isBroken || this.#stop.signal.aborted;
  }

  /** Whether the log holds what is known; asked by a probe if it seems not to. Never rejects. */
  async #settle(of: GuardedRef, epoch: Epoch): Promise<boolean> {
    const { clock, logger, onCount } = this.#options;
    const { topic, partition } = of;
    let isSuspected = false;
    while (!this.#isOver(epoch)) {
      let pauseMs = PROBE_AGAIN_MS;
      try {
        const finding = await this.#compare(of);
        if (this.#isOver(epoch)) return false;
        if (finding === 'holds') {
          if (isSuspected) logger.warn('the history of the log holds', { topic, partition });
          return true;
        }
        this.#setTrust(partition, 'doubt');
        if (!isSuspected) {
          isSuspected = true;
          pauseMs = LAG_MS;
          onCount?.('suspected', topic);
          logger.warn('the log is not what was seen before; the partition is not served until that is clear', {
            topic,
            partition,
            finding,
          });
        } else if (await this.#probe(of, epoch)) return false;
      } catch (error) {
        if (this.#isOver(epoch)) return false;
        logger.warn('the history of the log cannot be looked at; trying again', {
          topic,
          partition,
          error: errorText(error),
        });
      }
      await sleep(clock, pauseMs, this.#stop.signal);
    }
    return false;
  }

  /** Whether an append to the partition proves that its history broke. Errors: those of `Log.append` and `Log.read`. */
  async #probe(of: GuardedRef, epoch: Epoch): Promise<boolean> {
    const type = of.topic === 'inbound' ? INBOUND_TYPE.probe : EVENT_TYPE.probe;
    await this.append(of, [makeRecord(type, null, null, {})]);
    if ((await this.#compare(of)) !== 'differs' || this.#isOver(epoch)) return false;
    this.#break(of, epoch, 'another record stands where one was read');
    return true;
  }

  async #compare(of: GuardedRef): Promise<MarkFinding> {
    const { log, clock } = this.#options;
    // Before the look: what is learnt during it may lie behind what is seen.
    const epoch = this.#epoch;
    // Each by itself: a newer anchor that others have told would hide that what this process read is gone.
    const marks = [this.#options.meta.mark(epoch, of), this.#ownMark(of)].filter((mark) => mark !== null);
    const limit = deadline(clock, LOOK_MS, this.#stop.signal);
    try {
      const bounds = await abortable(log.bounds(of), limit.signal);
      const findings: MarkFinding[] = [];
      for (const mark of marks) {
        const { anchor } = mark;
        const isHeld = anchor !== null && anchor.offset >= bounds.start && anchor.offset < bounds.end;
        const read = isHeld ? await log.read(of, anchor.offset, { maxBytes: 1, signal: limit.signal }) : null;
        findings.push(compareWithMark(mark, bounds, read?.records[0] ?? null));
      }
      findings.push(await this.#compareAppended(of, bounds, limit.signal));
      const finding = worstFinding(findings);
      if (finding === 'holds') this.noteRead(epoch, of, null, bounds.end);
      return finding;
    } finally {
      limit.dispose();
    }
  }

  /** Whether what was acknowledged stands where it was said to. Once it was read it is an anchor as any other. Errors: those of `Log.read`. */
  async #compareAppended(of: GuardedRef, bounds: Bounds, signal: AbortSignal): Promise<MarkFinding> {
    const epoch = this.#epoch;
    const known = this.#knownOf(of);
    const { appended } = known;
    if (appended === null || appended.offset < bounds.start || appended.offset >= bounds.end) return 'holds';
    const [found] = (await this.#options.log.read(of, appended.offset, { maxBytes: 1, signal })).records;
    // Told by brokers that know differently much.
    if (found === undefined) return 'behind';
    if (found.offset !== appended.offset || !isSame(found, appended.record)) return 'differs';
    this.noteRead(epoch, of, found, found.offset + 1);
    if (known.appended === appended) known.appended = null;
    return 'holds';
  }

  /** @param epoch the one whose history the proof is about. */
  #break({ topic, partition }: PartitionRef, epoch: Epoch, proof: string): void {
    if (this.#isBroken || epoch !== this.#epoch) return;
    this.#isBroken = true;
    this.#wake();
    const { logger, onCount } = this.#options;
    onCount?.('proved', topic);
    logger.error('the history of the log broke; a new epoch begins, and all sessions of this one end', {
      topic,
      partition,
      proof,
      epoch,
    });
    void this.#propose(epoch, `${topic}/${partition}: ${proof}`);
  }

  /** Proposes until the epoch is another: a candidate that comes too late is void by itself. */
  async #propose(epoch: Epoch, reason: string): Promise<void> {
    const { meta, random, clock, logger } = this.#options;
    while (this.#isBroken && epoch === this.#epoch && !this.#stop.signal.aborted) {
      try {
        await meta.proposeNext(random, reason);
      } catch (error) {
        logger.warn('the new epoch could not be proposed; trying again', {
          error: errorText(error),
        });
      }
      await sleep(clock, PROPOSE_AGAIN_MS, this.#stop.signal);
    }
  }

  /** While the partition is in doubt what was kept is the evidence. */
  #keep(of: GuardedRef, offset: Offset, record: RecordInput | undefined): void {
    const trust = this.#trust.get(of.partition);
    if (record === undefined || (record.value?.length ?? 0) > MOST_KEPT_BYTES) return;
    const known = this.#knownOf(of);
    if (trust !== 'doubt' && offset > (known.appended?.offset ?? -1)) known.appended = { offset, record };
  }

  #endOf(of: GuardedRef): Offset {
    const known = this.#known.get(partitionName(of))?.end ?? 0;
    return Math.max(known, this.#options.meta.mark(this.#epoch, of)?.end ?? 0);
  }

  #knownOf(of: GuardedRef): Known {
    const name = partitionName(of);
    const known = this.#known.get(name) ?? { end: 0, last: null, appended: null };
    this.#known.set(name, known);
    return known;
  }
}

function isSame(one: Pick<RecordInput, 'key' | 'value'>, other: Pick<RecordInput, 'key' | 'value'>): boolean {
  const same = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
    a === null || b === null ? a === b : equalBytes(a, b);
  return same(one.key, other.key) && same(one.value, other.value);
}
