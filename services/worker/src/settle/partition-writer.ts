/**
 * Appends of one owner to one partition of `events`: in the order they were made, one group commit in flight. After an
 * append whose outcome is not known nothing more is written: the owner gives up its claim and learns from the log what
 * happened. SPEC: WRK-WRITER.
 */
import { ackWithin, errorText, hasLogCode, sleep } from '@throughline/log';
import type { Appended, Clock, LogDescription } from '@throughline/log';
import type { Offset, Partition, RecordInput } from '@throughline/protocol';
import type { WaitingShares } from './waiting-shares.ts';

/** The writer has stopped: the record is not in the log, or nobody knows. */
export class WriterStoppedError extends Error {
  override readonly name = 'WriterStoppedError';
}

export interface PartitionWriterOptions {
  /** Appends to `events`, with the errors of `Log.append`. */
  readonly log: {
    readonly description: LogDescription;
    append(
      to: { readonly topic: 'events'; readonly partition: Partition },
      records: readonly RecordInput[],
    ): Promise<Appended>;
  };
  readonly clock: Clock;
  readonly partition: Partition;
  /** Milliseconds that a refused append is tried again, and that an ack is waited for. */
  readonly deadlineMs: number;
  /** Of those that wait, over all partitions of the worker. */
  readonly shares: WaitingShares;
  /** Whose session it is. */
  principalOf(session: string): string;
  /** Called once when the writer had to give up. */
  onLost(reason: string): void;
}

interface Waiting {
  readonly record: RecordInput;
  readonly bytes: number;
  readonly session: string | null;
  resolve(offset: Offset): void;
  reject(error: Error): void;
}

const MAX_BATCH_RECORDS = 500;
const MAX_BATCH_BYTES = 1024 * 1024;
/** Bytes that wait before those who listen to {@link PartitionWriter.room} are held up. */
export const QUEUE_BYTES = 8 * 1024 * 1024;
const RETRY_MS = 100;

function sizeOf(record: RecordInput): number {
  return (
    (record.key?.length ?? 0) +
    (record.value?.length ?? 0) +
    record.headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  );
}

export class PartitionWriter {
  readonly #options: PartitionWriterOptions;
  readonly #queue: Waiting[] = [];
  readonly #stop = new AbortController();
  readonly #roomWaiters = new Set<() => void>();
  #queuedBytes = 0;
  #running = false;
  #failure: WriterStoppedError | null = null;

  constructor(options: PartitionWriterOptions) {
    this.#options = options;
  }

  /** Whether a record fits into the log. */
  fits(record: RecordInput): boolean {
    return sizeOf(record) <= this.#options.log.description.maxRecordBytes;
  }

  /**
   * Queues a record; resolves with its offset when it is durable. Rejects with `WriterStoppedError`. Nobody has to listen.
   * @param session whose it is, for its share of what waits.
   */
  write(record: RecordInput, session: string | null = null): Promise<Offset> {
    const written = new Promise<Offset>((resolve, reject) => {
      if (this.#failure !== null) {
        reject(this.#failure);
        return;
      }
      const bytes = sizeOf(record);
      this.#queue.push({ record, bytes, session, resolve, reject });
      this.#queuedBytes += bytes;
      if (session !== null) this.#options.shares.add(session, this.#options.principalOf(session), bytes);
    });
    written.catch(() => undefined);
    if (!this.#running && this.#queue.length > 0) {
      this.#running = true;
      void this.#run();
    }
    return written;
  }

  /** Resolves when there is room for more, or the writer has stopped. */
  room(): Promise<void> {
    if (this.#hasRoom()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#roomWaiters.add(resolve);
    });
  }

  /** Writes nothing more; what waits is rejected. Idempotent. */
  stop(): void {
    this.#fail('the owner has stopped');
    this.#stop.abort();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { log, partition } = this.#options;
    // Records made in one turn of the event loop share one commit.
    await Promise.resolve();
    for (;;) {
      const batch = this.#takeBatch();
      if (batch.length === 0) break;
      try {
        const { offsets } = await this.#append(batch.map((waiting) => waiting.record));
        batch.forEach((waiting, index) => {
          waiting.resolve(offsets[index] ?? 0);
        });
      } catch (error) {
        const reason = `append to events ${partition} failed on ${log.description.driver}: ${errorText(error)}`;
        const failure = this.#fail(reason);
        for (const waiting of batch) waiting.reject(failure);
      }
      this.#settled(batch);
      this.#wake();
    }
    this.#running = false;
  }

  /** A refused append left nothing in the log: it is tried again, in its order, until the deadline. */
  async #append(records: readonly RecordInput[]): Promise<Appended> {
    const { log, clock, partition, deadlineMs } = this.#options;
    const until = clock.monoMs() + deadlineMs;
    for (;;) {
      try {
        // An append that is not answered in time may still land: its outcome is unknown.
        return await ackWithin(
          clock,
          Math.max(1, until - clock.monoMs()),
          log.append({ topic: 'events', partition }, records),
        );
      } catch (error) {
        if (!hasLogCode(error, 'APPEND_REFUSED')) throw error;
        if (error.details.reason === 'closed' || error.details.reason === 'too-large') throw error;
        if (clock.monoMs() >= until || !(await sleep(clock, RETRY_MS, this.#stop.signal))) throw error;
      }
    }
  }

  #takeBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      if (count >= MAX_BATCH_RECORDS || (count > 0 && bytes + waiting.bytes > MAX_BATCH_BYTES)) break;
      bytes += waiting.bytes;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  /** They do not wait any more. */
  #settled(batch: readonly Waiting[]): void {
    const { shares } = this.#options;
    for (const { session, bytes } of batch) {
      this.#queuedBytes -= bytes;
      if (session !== null) shares.take(session, bytes);
    }
    shares.wake();
  }

  #hasRoom(): boolean {
    return this.#queuedBytes <= QUEUE_BYTES || this.#failure !== null;
  }

  #wake(): void {
    if (!this.#hasRoom()) return;
    for (const wake of this.#roomWaiters) wake();
    this.#roomWaiters.clear();
  }

  #fail(reason: string): WriterStoppedError {
    if (this.#failure !== null) return this.#failure;
    const failure = new WriterStoppedError(reason);
    this.#failure = failure;
    const unwritten = this.#queue.splice(0);
    for (const waiting of unwritten) waiting.reject(failure);
    this.#settled(unwritten);
    this.#wake();
    this.#options.onLost(reason);
    return failure;
  }
}
