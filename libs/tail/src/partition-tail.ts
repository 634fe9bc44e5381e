/**
 * One shared tail a partition: fetched once, cached, routed by session key in O(1) a record. Readers are cursors: one
 * position each, served from the cache where it reaches, by catch-up reads below it, with no hole and no repeat at the
 * border, because both are the same cursor. SPEC: TAIL-*.
 */
import { foldLost } from '@throughline/history';
import type { ClaimHistory } from '@throughline/history';
import type { Bounds, Clock, Log, PartitionRef } from '@throughline/log';
import type { CheckpointHint, Epoch, LogRecord, LostRequests, Offset, Partition } from '@throughline/protocol';
import type { CatchUpChunk } from './catch-up-chunks.ts';
import type { CatchUpPool } from './catch-up-pool.ts';
import { CatchUpReads } from './catch-up-reads.ts';
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
  /** As for the reader. */
  isStillInForce?(claimed: Epoch, signal: AbortSignal): Promise<boolean>;
  onVerdict?(verdict: TailVerdict): void;
  /** A read failed, and is tried again. */
  onError?(error: unknown, of: PartitionRef): void;
  /** A read of the tail was answered. */
  onAnswer?(of: PartitionRef): void;
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
/** Of events returned at once. */
const MAX_BYTES = 256 * 1024;
/** Of the bytes for recent records: what is kept of catch-up reads beside them. */
const CHUNKS_SHARE = 0.25;

function shareOf(cacheBytes: number): { readonly chunkBytes: number; readonly hotBytes: number } {
  const chunkBytes = Math.floor(cacheBytes * CHUNKS_SHARE);
  return { chunkBytes, hotBytes: cacheBytes - chunkBytes };
}

export class PartitionTail {
  readonly partition: Partition;
  /** Whether it has caught up once with what was acknowledged when it was first asked for. Set by the tail set. */
  isReady = false;
  readonly #options: PartitionTailOptions;
  readonly #cache: HotCache;
  readonly #catchUp: CatchUpReads;
  readonly #reader: PartitionReader;
  readonly #waiting = new Map<string, Set<SessionCursor>>();
  #lost: readonly LostRequests[] = [];
  #stopped = false;

  constructor(options: PartitionTailOptions) {
    this.#options = options;
    this.partition = options.partition;
    const { chunkBytes, hotBytes } = shareOf(options.cacheBytes);
    const { log, clock, partition, epoch, pool } = options;
    this.#catchUp = new CatchUpReads({
      log,
      clock,
      partition,
      chunkBytes,
      pool,
      folded: () => this.position(),
      newest: () => this.last(),
      isInDoubt: () => this.isInDoubt(),
      onDoubt: (seen) => options.guard?.suspect(epoch, { topic: 'events', partition }, seen),
      onError: (error) => options.onError?.(error, { topic: 'events', partition }),
    });
    this.#cache = new HotCache(hotBytes, options.hint()?.offset ?? 0);
    this.#reader = new PartitionReader({
      log,
      clock,
      partition,
      epoch,
      hint: () => options.hint(),
      onEvent: (event, verdict) => {
        options.onVerdict?.(verdict);
        if (verdict === 'accepted') this.#lost = foldLost(this.#lost, event);
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
      ...(options.isStillInForce === undefined ? {} : { isStillInForce: options.isStillInForce }),
      ...(options.onError === undefined ? {} : { onError: options.onError }),
      ...(options.onAnswer === undefined ? {} : { onAnswer: options.onAnswer }),
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

  /** Requests that nobody will ever answer, as of the checkpoints read. */
  lost(): readonly LostRequests[] {
    return this.#lost;
  }

  /** Of what it may hold from now on, in bytes. */
  resize(cacheBytes: number): void {
    const { chunkBytes, hotBytes } = shareOf(cacheBytes);
    this.#cache.resize(hotBytes);
    this.#catchUp.resize(chunkBytes);
  }

  cacheBytes(): number {
    return this.#cache.bytes() + this.#catchUp.bytes();
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
    this.#catchUp.stop();
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

  /** @internal */ get catchUp(): CatchUpReads {
    return this.#catchUp;
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
  #behindAnchor: { readonly from: Offset; readonly chunk: CatchUpChunk } | null = null;
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

  /** What follows is read from the log, not from the cache. */
  isBehind(): boolean {
    return this.#waiter === null && this.#position < this.#tail.cache.start();
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
      const read = await tail.catchUp.read(from, signal);
      if (read.kind !== 'chunk') return read;
      const { chunk } = read;
      const record = chunk.firstAt(from);
      if (record !== undefined) {
        // One read serves the anchor and what follows it.
        this.#behindAnchor = { from: record.offset + 1, chunk };
        return { kind: 'record', record };
      }
      // Only holes there: the first record comes later.
      from = chunk.next;
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
          const result = this.#accept(stash.chunk);
          if (result !== null) return result;
          continue;
        }
      }
      if (this.#position >= tail.cache.start()) {
        this.#cached = true;
        const events = tail.cache.eventsOf(this.key, this.#position, MAX_EVENTS, MAX_BYTES);
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
      const read = await tail.catchUp.read(this.#position, signal, waitMs > 0 ? until - clock.monoMs() : Infinity);
      if (read.kind === 'late') return { kind: 'idle' };
      if (read.kind !== 'chunk') return read;
      const result = this.#accept(read.chunk);
      if (result !== null) return result;
      if (waitMs > 0 && clock.monoMs() >= until) return { kind: 'idle' };
    }
  }

  /** @internal */ wake(offset: Offset | null): void {
    if (offset !== null) this.#position = Math.max(this.#position, offset);
    this.#waiter?.();
  }

  /** Takes what a chunk holds from the position on, and moves to its end; `null` if nothing of it is of this session. */
  #accept(chunk: CatchUpChunk): Extract<CursorResult, { kind: 'events' | 'gap' }> | null {
    const tail = this.#tail;
    const claims = tail.claims();
    const first = chunk.firstAt(this.#position);
    // Read before it was evicted, judged after: the claim it needs may be forgotten, and a record of the owner would be lost.
    if (first !== undefined && first.offset < claims.floor()) return { kind: 'gap', ...tail.bounds() };
    const events = chunk.eventsOf(this.key, this.#position).filter(({ event }) => claims.judge(event) === 'accepted');
    this.#position = chunk.next;
    this.#passed = chunk.records.at(-1) ?? this.#passed;
    return events.length > 0 ? { kind: 'events', events } : null;
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
