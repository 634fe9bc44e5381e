/**
 * Reads of one partition's older records for all its cursors: one at a time, each for everyone who waits within what it
 * brings, as far as the tail has folded; beyond that no verdict is known. SPEC: TAIL-ROUNDS, TAIL-CHUNKS, TAIL-POOL.
 */
import { hasLogCode, sleep } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import type { LogRecord, Offset, Partition } from '@throughline/protocol';
import { CatchUpChunk, CatchUpChunks } from './catch-up-chunks.ts';
import { CatchUpOrder } from './catch-up-order.ts';
import type { CatchUpPool } from './catch-up-pool.ts';
import { isSame } from './steady-reader.ts';

export interface CatchUpReadsOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly partition: Partition;
  /** Bytes kept of what was read, for whoever comes back to the same place soon. */
  readonly chunkBytes: number;
  readonly pool: CatchUpPool;
  /** The next offset that the tail will fold. */
  folded(): Offset;
  /** The newest record that it has folded. */
  newest(): LogRecord | null;
  /** The log is not what was read before, as far as it can be seen: nothing is read from it. */
  isInDoubt(): boolean;
  /** The log ends before `seen`, which was read, or holds another record there. */
  onDoubt(seen: Offset): void;
  onError(error: unknown): void;
}

export type CatchUpRead =
  /** Everything from the place asked for, or from below it; nothing if it could not be read yet. */
  | { readonly kind: 'chunk'; readonly chunk: CatchUpChunk }
  /** Records at the place are no longer held. */
  | { readonly kind: 'gap'; readonly start: Offset; readonly end: Offset }
  /** The time asked is over. */
  | { readonly kind: 'late' }
  | { readonly kind: 'stopped' };

interface Waiter {
  readonly position: Offset;
  settle(read: CatchUpRead): void;
}

const READ_BYTES = 256 * 1024;
/** A read below what was read before finds something; a log that lags behind itself is not asked in a busy loop. */
const READ_WAIT_MS = 100;
const RETRY_MS = 100;

export class CatchUpReads {
  readonly #options: CatchUpReadsOptions;
  readonly #chunks: CatchUpChunks;
  readonly #order = new CatchUpOrder<Waiter>();
  /** Where answers come from that were found to be of the history that the tail has read. */
  #source: string | undefined = undefined;
  /** Of the loop that runs while somebody waits. */
  #running: AbortController | null = null;
  #stopped = false;

  constructor(options: CatchUpReadsOptions) {
    this.#options = options;
    this.#chunks = new CatchUpChunks(options.chunkBytes);
  }

  bytes(): number {
    return this.#chunks.bytes();
  }

  resize(chunkBytes: number): void {
    this.#chunks.resize(chunkBytes);
  }

  /** What the log holds from `position` on. A failure is told and gives an empty chunk. Waits at most `waitMs`, if it is given. */
  read(position: Offset, signal: AbortSignal): Promise<Exclude<CatchUpRead, { readonly kind: 'late' }>>;
  read(position: Offset, signal: AbortSignal, waitMs: number): Promise<CatchUpRead>;
  read(position: Offset, signal: AbortSignal, waitMs = Infinity): Promise<CatchUpRead> {
    if (this.#stopped || signal.aborted) return Promise.resolve({ kind: 'stopped' });
    // What another reader brought is as good as the log, while that is not in doubt.
    const known = this.#options.isInDoubt() ? null : this.#chunks.find(position);
    if (known !== null) return Promise.resolve({ kind: 'chunk', chunk: known });
    return new Promise((resolve) => {
      const leave = (read: CatchUpRead): void => {
        this.#order.remove(waiter);
        waiter.settle(read);
        if (this.#order.isEmpty()) this.#running?.abort();
      };
      const onAbort = (): void => {
        leave({ kind: 'stopped' });
      };
      const cancel =
        waitMs === Infinity
          ? undefined
          : this.#options.clock.setTimer(waitMs, () => {
              leave({ kind: 'late' });
            });
      const waiter: Waiter = {
        position,
        settle: (read) => {
          cancel?.();
          signal.removeEventListener('abort', onAbort);
          resolve(read);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#order.add(waiter);
      if (this.#running === null) void this.#run();
    });
  }

  /** Whoever waits is stopped. */
  stop(): void {
    this.#stopped = true;
    for (const waiter of this.#order.takeAll()) waiter.settle({ kind: 'stopped' });
    this.#running?.abort();
  }

  /** Ends when nobody waits. Never rejects. */
  async #run(): Promise<void> {
    const { pool, clock } = this.#options;
    for (;;) {
      const from = this.#order.next();
      if (from === null) break;
      const running = new AbortController();
      this.#running = running;
      let read: CatchUpRead | null = null;
      try {
        read = await pool.run(() => this.#readOnce(from, running.signal), running.signal);
      } catch (error) {
        if (!running.signal.aborted) this.#options.onError(error);
      }
      if (running.signal.aborted) continue;
      if (read === null) {
        await sleep(clock, RETRY_MS, running.signal);
        // A failure is everybody's: each comes again, or has waited long enough.
        for (const waiter of this.#order.takeAll())
          waiter.settle({ kind: 'chunk', chunk: new CatchUpChunk(waiter.position, waiter.position, []) });
      } else {
        const next = read.kind === 'chunk' ? read.chunk.next : read.kind === 'gap' ? read.start : from;
        for (const waiter of this.#order.take(from, next)) waiter.settle(read);
      }
    }
    this.#running = null;
  }

  /** `null` if the log cannot be trusted at the moment. Rejects with what the log says. */
  async #readOnce(from: Offset, signal: AbortSignal): Promise<CatchUpRead | null> {
    const { log, partition, folded, isInDoubt, onDoubt } = this.#options;
    const seen = folded();
    try {
      const options = { maxBytes: READ_BYTES, waitMs: READ_WAIT_MS, signal };
      const batch = await log.read({ topic: 'events', partition }, from, options);
      const limit = folded();
      if (isInDoubt() || batch.bounds.end < seen || !(await this.#isOfHistory(batch.source, signal))) {
        // It ends before what was read: what it holds now may have taken the place of that.
        onDoubt(seen);
        return null;
      }
      const records = batch.next <= limit ? batch.records : batch.records.filter((record) => record.offset < limit);
      const chunk = new CatchUpChunk(from, Math.max(from, Math.min(batch.next, limit)), records);
      this.#chunks.add(chunk);
      return { kind: 'chunk', chunk };
    } catch (error) {
      const { start, end } = hasLogCode(error, 'OFFSET_OUT_OF_RANGE') ? error.details : {};
      if (start !== undefined && from < start) return { kind: 'gap', start, end: end ?? start };
      throw error;
    }
  }

  /** Whether an answer from `source` is of the history that the tail has read: told by the newest record of that. */
  async #isOfHistory(source: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { log, partition, newest } = this.#options;
    const last = newest();
    if (source === this.#source || last === null) return true;
    try {
      const again = await log.read({ topic: 'events', partition }, last.offset, { maxBytes: 1, signal });
      // Where that came from yet another place nothing is said of the answer.
      if (again.source !== source || !isSame(again.records[0], last)) return false;
    } catch (error) {
      // With what was read last gone there is nothing to compare with, and nothing below it is held either.
      if (!hasLogCode(error, 'OFFSET_OUT_OF_RANGE') || last.offset >= (error.details.start ?? 0)) throw error;
    }
    this.#source = source;
    return true;
  }
}
