/**
 * One shared tail a partition: fetched once, cached, routed by session key in O(1) a record. Readers are cursors: one
 * position each, served from the cache where it reaches, by catch-up reads below it, with no hole and no repeat at the
 * border, because both are the same cursor. SPEC: TAIL-*.
 */
import type { ClaimHistory } from '@throughline/history';
import { hasLogCode, sleep } from '@throughline/log';
import type { Bounds, Clock, Log } from '@throughline/log';
import { readEventRecord } from '@throughline/protocol';
import type { CheckpointHint, LogRecord, Offset, Partition } from '@throughline/protocol';
import type { CatchUpPool } from './catch-up-pool.ts';
import { HotCache, TailEvent } from './hot-cache.ts';
import type { HistoryGuard } from './history-guard.ts';
import { PartitionReader } from './partition-reader.ts';

export type TailVerdict = 'accepted' | 'fenced' | 'unreadable';

export interface PartitionTailOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly partition: Partition;
  readonly epoch: string;
  readonly cacheBytes: number;
  readonly pool: CatchUpPool;
  hint(): CheckpointHint | null;
  /** As for the reader: resolves when `hint` knows what was acknowledged before the call. */
  syncHints?(signal: AbortSignal): Promise<void>;
  onVerdict?(verdict: TailVerdict): void;
  onError?(error: unknown): void;
  /** A cursor that was served from the cache fell behind it. */
  onSlowReader?(): void;
  readonly guard?: Pick<HistoryGuard, 'noteRead' | 'suspect'>;
}

export type CursorResult =
  | { readonly kind: 'events'; readonly events: readonly TailEvent[] }
  /** Nothing came within the time asked; with 0, there is nothing now. */
  | { readonly kind: 'idle' }
  /** Records at the cursor's position are no longer held. */
  | { readonly kind: 'gap'; readonly start: Offset; readonly end: Offset }
  /** The caller's signal fired, or the tail was stopped. */
  | { readonly kind: 'stopped' };

export type AnchorRead =
  | { readonly kind: 'record'; readonly record: LogRecord }
  | { readonly kind: 'nothing-yet' }
  | { readonly kind: 'gap'; readonly start: Offset; readonly end: Offset }
  | { readonly kind: 'stopped' };

const MAX_EVENTS = 256;
const CATCH_UP_BYTES = 256 * 1024;
/** A read below what was read before finds something; a log that lags behind itself is not asked in a busy loop. */
const CATCH_UP_WAIT_MS = 100;
const RETRY_MS = 100;

export class PartitionTail {
  readonly partition: Partition;
  /** Whether it has caught up once with what was acknowledged when it was first asked for. Set by the tail set. */
  isReady = false;
  readonly #options: PartitionTailOptions;
  readonly #cache: HotCache;
  readonly #reader: PartitionReader;
  readonly #waiting = new Map<string, Set<SessionCursor>>();
  #stopped = false;

  constructor(options: PartitionTailOptions) {
    this.#options = options;
    this.partition = options.partition;
    this.#cache = new HotCache(options.cacheBytes, options.hint()?.offset ?? 0);
    this.#reader = new PartitionReader({
      log: options.log,
      clock: options.clock,
      partition: options.partition,
      epoch: options.epoch,
      hint: () => options.hint(),
      onEvent: (event, verdict) => {
        options.onVerdict?.(verdict);
        const tailEvent = verdict === 'accepted' && event.key !== '' ? new TailEvent(event) : null;
        this.#cache.add(event.record, tailEvent);
        if (tailEvent !== null) this.#wake(event.key, event.offset);
      },
      onUnreadable: (record) => {
        options.onVerdict?.('unreadable');
        this.#cache.add(record, null);
      },
      onGap: (start) => {
        this.#cache.reset(start);
        this.#wakeAll();
      },
      ...(options.syncHints === undefined ? {} : { syncHints: options.syncHints }),
      ...(options.onError === undefined ? {} : { onError: options.onError }),
      ...(options.guard === undefined ? {} : { guard: options.guard }),
    });
  }

  position(): Offset {
    return this.#reader.position();
  }

  /** The newest record read: at or before {@link position}, any session's. */
  last(): LogRecord | null {
    return this.#reader.last();
  }

  claims(): ClaimHistory {
    return this.#reader.claims();
  }

  /** Bounds of the partition as of the newest read. */
  bounds(): Bounds {
    return this.#reader.bounds();
  }

  /** The log is not what was read before, as far as it can be seen: nothing is to be read from it. */
  isInDoubt(): boolean {
    return this.#reader.isInDoubt();
  }

  cacheBytes(): number {
    return this.#cache.bytes();
  }

  /** Resolves `true` when everything below `offset` was read, `false` when `signal` fires or the tail stops first. */
  reached(offset: Offset, signal: AbortSignal): Promise<boolean> {
    return this.#reader.reached(offset, signal);
  }

  /** A reader of one session's accepted records at or after `from`. */
  cursor(key: string, from: Offset): SessionCursor {
    return new SessionCursor(this, key, from);
  }

  /** Idempotent; every call resolves when reading has stopped. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wakeAll();
    await this.#reader.stop();
  }

  #wake(key: string, offset: Offset): void {
    const cursors = this.#waiting.get(key);
    if (cursors === undefined) return;
    this.#waiting.delete(key);
    for (const cursor of cursors) cursor.wake(offset);
  }

  #wakeAll(): void {
    const sets = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const cursors of sets) for (const cursor of cursors) cursor.wake(null);
  }

  // For cursors.

  /** @internal */ get isStopped(): boolean {
    return this.#stopped;
  }

  /** @internal */ get cache(): HotCache {
    return this.#cache;
  }

  /** @internal */ get options(): PartitionTailOptions {
    return this.#options;
  }

  /** @internal */ park(cursor: SessionCursor): void {
    const cursors = this.#waiting.get(cursor.key);
    if (cursors === undefined) this.#waiting.set(cursor.key, new Set([cursor]));
    else cursors.add(cursor);
  }

  /** @internal */ unpark(cursor: SessionCursor): void {
    const cursors = this.#waiting.get(cursor.key);
    if (cursors?.delete(cursor) === true && cursors.size === 0) this.#waiting.delete(cursor.key);
  }
}

/** One position in one session. Not for concurrent use: one `next` or `readAnchor` at a time. */
export class SessionCursor {
  readonly key: string;
  readonly #tail: PartitionTail;
  #position: Offset;
  #passed: LogRecord | null = null;
  #behindAnchor: { readonly from: Offset; readonly records: readonly LogRecord[]; readonly next: Offset } | null = null;
  #cached = false;
  #waiter: (() => void) | null = null;

  constructor(tail: PartitionTail, key: string, from: Offset) {
    this.#tail = tail;
    this.key = key;
    this.#position = from;
  }

  /** Everything of the session below was returned. */
  position(): Offset {
    return this.#waiter === null ? this.#position : this.#tail.position();
  }

  /**
   * A record at or before this cursor's own position, to anchor an id that only moves the client's cursor: the newest
   * such record known; `null` if none was met. Never the tail's position while something is still to be returned.
   */
  passed(): LogRecord | null {
    if (this.#waiter !== null || this.#position === this.#tail.position()) return this.#tail.last() ?? this.#passed;
    return this.#passed;
  }

  /** Moves on to `position`; used once, behind an anchor. */
  skipTo(position: Offset): void {
    this.#position = position;
  }

  /**
   * The first record at or after the position, whatever session it belongs to. The cursor stays where it is; the caller
   * moves it behind the anchor by {@link skipTo}.
   */
  async readAnchor(signal: AbortSignal): Promise<AnchorRead> {
    const tail = this.#tail;
    let from = this.#position;
    for (;;) {
      if (tail.isStopped || signal.aborted) return { kind: 'stopped' };
      if (from >= tail.cache.start()) {
        const record = tail.cache.firstAt(from);
        return record === null ? { kind: 'nothing-yet' } : { kind: 'record', record };
      }
      const read = await this.#readLog(from, signal);
      if (read.kind !== 'batch') return read;
      const [record, ...rest] = read.records;
      if (record !== undefined) {
        // One read serves the anchor and what follows it.
        this.#behindAnchor = { from: record.offset + 1, records: rest, next: read.next };
        return { kind: 'record', record };
      }
      // Only holes there: the first record comes later.
      from = read.next;
    }
  }

  /**
   * The next accepted records of the session, in log order, or what came instead. Waits at most `waitMs`, also while it
   * reads through older records of other sessions; with 0 it looks through all that is there now.
   */
  async next(signal: AbortSignal, waitMs: number): Promise<CursorResult> {
    const tail = this.#tail;
    const { clock } = tail.options;
    const until = clock.monoMs() + waitMs;
    for (;;) {
      if (tail.isStopped || signal.aborted) return { kind: 'stopped' };
      const stash = this.#behindAnchor;
      if (stash !== null) {
        this.#behindAnchor = null;
        if (stash.from === this.#position) {
          const result = this.#accept(stash.records, stash.next);
          if (result !== null) return result;
          continue;
        }
      }
      if (this.#position >= tail.cache.start()) {
        this.#cached = true;
        const events = tail.cache.eventsOf(this.key, this.#position, MAX_EVENTS, CATCH_UP_BYTES);
        const last = events.at(-1);
        if (last !== undefined) {
          this.#position = last.event.offset + 1;
          this.#passed = last.event.record;
          return { kind: 'events', events };
        }
        this.#position = Math.max(this.#position, tail.position());
        if (!(await this.#wait(signal, Math.max(0, until - clock.monoMs()))))
          return tail.isStopped || signal.aborted ? { kind: 'stopped' } : { kind: 'idle' };
        continue;
      }
      if (this.#cached) {
        this.#cached = false;
        tail.options.onSlowReader?.();
      }
      const read = await this.#readLog(this.#position, signal);
      if (read.kind !== 'batch') return read;
      const result = this.#accept(read.records, read.next);
      if (result !== null) return result;
      if (waitMs > 0 && clock.monoMs() >= until) return { kind: 'idle' };
    }
  }

  /** @internal */ wake(offset: Offset | null): void {
    if (offset !== null) this.#position = Math.max(this.#position, offset);
    this.#waiter?.();
  }

  /** Takes records up to `next` and moves there; `null` if none is of this session. */
  #accept(records: readonly LogRecord[], next: Offset): Extract<CursorResult, { kind: 'events' | 'gap' }> | null {
    const tail = this.#tail;
    const claims = tail.claims();
    const [first] = records;
    // Read before it was evicted, judged after: the claim it needs may be forgotten, and a record of the owner would be lost.
    if (first !== undefined && first.offset < claims.floor()) return { kind: 'gap', ...tail.bounds() };
    const events: TailEvent[] = [];
    for (const record of records) {
      const event = readEventRecord(record);
      if ('unreadable' in event || event.key !== this.key) continue;
      if (claims.judge(event) === 'accepted') events.push(new TailEvent(event));
    }
    this.#position = next;
    this.#passed = records.at(-1) ?? this.#passed;
    return events.length > 0 ? { kind: 'events', events } : null;
  }

  /** One catch-up read, cut at what the tail has folded: beyond it no verdict is known. Moves nothing. */
  async #readLog(
    from: Offset,
    signal: AbortSignal,
  ): Promise<
    | { readonly kind: 'batch'; readonly records: readonly LogRecord[]; readonly next: Offset }
    | Exclude<CursorResult, { kind: 'events' | 'idle' }>
  > {
    const tail = this.#tail;
    const { log, pool, partition, clock } = tail.options;
    const seen = tail.position();
    try {
      const batch = await pool.run(
        () =>
          log.read({ topic: 'events', partition }, from, {
            maxBytes: CATCH_UP_BYTES,
            waitMs: CATCH_UP_WAIT_MS,
            signal,
          }),
        signal,
      );
      const limit = tail.position();
      if (tail.isInDoubt() || batch.bounds.end < seen) {
        // It ends before what was read: what it holds now may have taken the place of that.
        tail.options.guard?.suspect(tail.options.epoch, { topic: 'events', partition }, seen);
        await sleep(clock, RETRY_MS, signal);
        return { kind: 'batch', records: [], next: from };
      }
      const records = batch.next <= limit ? batch.records : batch.records.filter((record) => record.offset < limit);
      return { kind: 'batch', records, next: Math.max(from, Math.min(batch.next, limit)) };
    } catch (error) {
      if (signal.aborted || tail.isStopped) return { kind: 'stopped' };
      if (hasLogCode(error, 'OFFSET_OUT_OF_RANGE') && from < (error.details.start ?? 0)) {
        return { kind: 'gap', start: error.details.start ?? 0, end: error.details.end ?? 0 };
      }
      tail.options.onError?.(error);
      await sleep(clock, RETRY_MS, signal);
      return { kind: 'batch', records: [], next: from };
    }
  }

  /** Resolves `true` when there may be more, `false` on timeout, abort or stop. */
  #wait(signal: AbortSignal, waitMs: number): Promise<boolean> {
    const tail = this.#tail;
    return new Promise((resolve) => {
      const finish = (more: boolean): void => {
        cancel();
        signal.removeEventListener('abort', onAbort);
        // While parked, everything of this session below the tail's position had been returned.
        if (!more) {
          this.#passed = this.passed();
          this.#position = Math.max(this.#position, tail.position());
        }
        this.#waiter = null;
        tail.unpark(this);
        resolve(more);
      };
      const onAbort = (): void => {
        finish(false);
      };
      const cancel = tail.options.clock.setTimer(waitMs, () => {
        finish(false);
      });
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiter = () => {
        finish(true);
      };
      tail.park(this);
    });
  }
}
