/**
 * The read loop of one partition of `events`: reads in log order, types each record by its headers, judges it by the
 * claim in force, and hands it to one listener. Waits out errors; never skips in silence. SPEC: TAIL-ORDER.
 */
import { ClaimHistory } from '@throughline/history';
import type { Verdict } from '@throughline/history';
import { sleep } from '@throughline/log';
import type { Bounds, Clock, Log, PartitionRef } from '@throughline/log';
import { readEventRecord } from '@throughline/protocol';
import type {
  CheckpointHint,
  Epoch,
  EventRecord,
  LogRecord,
  Offset,
  Partition,
  Unreadable,
} from '@throughline/protocol';
import type { HistoryGuard } from './history-guard.ts';
import { SteadyReader } from './steady-reader.ts';

export interface PartitionReaderOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly partition: Partition;
  readonly epoch: string;
  /** The newest checkpoint known, where reading may begin. Asked again if the reader itself fell behind retention. */
  hint(): CheckpointHint | null;
  /** Resolves when {@link hint} knows what was acknowledged before the call: a process that slept knows less. */
  syncHints?(signal: AbortSignal): Promise<void>;
  /**
   * A claim of another epoch was read: resolves with whether the reader's own one is still in force. If not, nothing is
   * read any more. Default: it is.
   */
  isStillInForce?(claimed: Epoch, signal: AbortSignal): Promise<boolean>;
  /** Every readable record, in log order. Must not throw. */
  onEvent(event: EventRecord, verdict: Verdict): void;
  /** A record that is no event of this format. It counts as read. */
  onUnreadable(record: LogRecord, why: string): void;
  /** Records below `start` were evicted before they were read. */
  onGap?(start: Offset): void;
  /** A read failed, and is tried again. */
  onError?(error: unknown, of: PartitionRef): void;
  /** A read was answered. */
  onAnswer?(of: PartitionRef): void;
  /** Learns what was read, and of doubts. */
  readonly guard?: Pick<HistoryGuard, 'noteRead' | 'suspect'>;
}

const WAIT_MS = 5000;
const RETRY_MS = 100;
/** While the log is not what was read before. */
const DOUBT_MS = 250;
const MAX_BATCH_BYTES = 1024 * 1024;

export class PartitionReader {
  readonly #options: PartitionReaderOptions;
  readonly #closing = new AbortController();
  readonly #finished: Promise<void>;
  readonly #waiting = new Set<() => void>();
  readonly #steady: SteadyReader;
  #claims: ClaimHistory;
  #position: Offset;
  #bounds: Bounds = { start: 0, end: 0 };
  #last: LogRecord | null = null;

  constructor(options: PartitionReaderOptions) {
    this.#options = options;
    const hint = options.hint();
    this.#claims = new ClaimHistory(options.epoch, hint?.claims ?? [], hint?.worker ?? '');
    this.#position = hint?.offset ?? 0;
    this.#steady = new SteadyReader(options.log, options.clock, { topic: 'events', partition: options.partition });
    this.#finished = this.#run();
  }

  /** Next offset to be read. */
  position(): Offset {
    return this.#position;
  }

  /** Bounds of the partition as of the newest read. */
  bounds(): Bounds {
    return this.#bounds;
  }

  /** The newest record read, readable or not. */
  last(): LogRecord | null {
    return this.#last;
  }

  claims(): ClaimHistory {
    return this.#claims;
  }

  /** Resolves `true` when everything below `offset` was read, `false` when `signal` fires or the reader stops first. */
  reached(offset: Offset, signal: AbortSignal): Promise<boolean> {
    if (this.#position >= offset) return Promise.resolve(true);
    if (signal.aborted || this.#closing.signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const check = (): void => {
        const done = this.#position >= offset;
        if (!done && !signal.aborted && !this.#closing.signal.aborted) return;
        this.#waiting.delete(check);
        signal.removeEventListener('abort', check);
        resolve(done);
      };
      this.#waiting.add(check);
      signal.addEventListener('abort', check, { once: true });
    });
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#finished;
  }

  #wake(): void {
    for (const check of this.#waiting) check();
  }

  /** The log ended before the position, or held another record than was read, when it was last looked at. */
  isInDoubt(): boolean {
    return this.#steady.isInDoubt();
  }

  async #run(): Promise<void> {
    const { clock, partition, epoch, guard } = this.#options;
    const { signal } = this.#closing;
    const ref = { topic: 'events', partition } as const;
    while (!signal.aborted) {
      try {
        const read = await this.#steady.read(this.#position, { maxBytes: MAX_BATCH_BYTES, waitMs: WAIT_MS, signal });
        if (signal.aborted) return;
        this.#options.onAnswer?.(ref);
        if (read.kind === 'batch') {
          this.#bounds = read.bounds;
          for (const record of read.records) {
            const event = readEventRecord(record);
            const claimed = 'body' in event && event.body.type === 'claimed' ? event.body.epoch : epoch;
            if (claimed !== epoch && !(await this.#isInForce(claimed))) return;
            this.#take(record, event);
          }
          this.#position = read.next;
          guard?.noteRead(epoch, ref, this.#last, read.bounds.end);
          this.#claims.trim(read.bounds.start);
          this.#wake();
        } else if (read.kind === 'gap') await this.#passGap(read.start, read.end);
        else {
          guard?.suspect(epoch, ref, this.#position);
          await sleep(clock, DOUBT_MS, signal);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onError?.(error, ref);
        await sleep(clock, RETRY_MS, signal);
      }
    }
  }

  /** Retention has passed this reader: it goes on from what is held. */
  async #passGap(start: Offset, end: Offset): Promise<void> {
    await this.#options.syncHints?.(this.#closing.signal);
    this.#bounds = { start, end };
    this.#skipTo(start);
  }

  /** Whether the epoch of this reader is still in force, though another one is claimed. */
  async #isInForce(claimed: Epoch): Promise<boolean> {
    const { signal } = this.#closing;
    return (await this.#options.isStillInForce?.(claimed, signal)) !== false && !signal.aborted;
  }

  #take(record: LogRecord, event: EventRecord | Unreadable): void {
    this.#last = record;
    // What the listener asks for while it is called is the position after this record.
    this.#position = record.offset + 1;
    if ('unreadable' in event) this.#options.onUnreadable(record, event.unreadable);
    else this.#options.onEvent(event, this.#judge(event));
  }

  /**
   * A claim whose maker died before `meta` knew of it, and which retention has taken, is known to those alone who read it
   * in time. They go on from the newest checkpoint, as all others do. SPEC: TAIL-CLAIM-EVICTED.
   */
  #judge(event: EventRecord): Verdict {
    const verdict = this.#claims.fold(event);
    if (verdict === 'accepted' || !this.#claims.isPassedBy(event, this.#bounds.start)) return verdict;
    const hint = this.#options.hint();
    const newest = hint?.claims.at(-1) ?? null;
    if (event.body.type !== 'claimed' || newest !== event.body.predecessor) return verdict;
    this.#claims = new ClaimHistory(this.#options.epoch, hint?.claims, hint?.worker);
    return this.#claims.fold(event);
  }

  /** Retention has passed this reader: begin again at what is held, with the claims of the newest checkpoint. */
  #skipTo(start: Offset): void {
    const hint = this.#options.hint();
    const known = this.#claims.list();
    if (hint !== null && (hint.claims.at(-1) ?? -1) > (known.at(-1) ?? -1)) {
      this.#claims = new ClaimHistory(this.#options.epoch, hint.claims, hint.worker);
    }
    this.#position = Math.max(start, this.#position);
    this.#options.onGap?.(start);
    this.#wake();
  }
}
