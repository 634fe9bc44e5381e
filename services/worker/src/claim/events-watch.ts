/**
 * The owner's own reading of `events[p]`: claims, the newest checkpoint, and what happened since. It sees its own
 * records accepted, or fenced. SPEC: WRK-WATCH.
 */
import type { ClaimHistory, Verdict } from '@throughline/history';
import { abortable } from '@throughline/log';
import type { Log, PartitionRef } from '@throughline/log';
import { classifyText, decodeText } from '@throughline/protocol';
import type { EventRecord, LogRecord, Offset, Partition } from '@throughline/protocol';
import { PartitionReader } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { SinceCheckpoint } from './since-checkpoint.ts';

interface Unread {
  readonly record: LogRecord;
  readonly why: string;
}

/** Records that nobody owned when they were found unreadable, kept for the next owner to report. */
const MAX_UNREAD = 100;

export class EventsWatch {
  readonly #log: Log;
  readonly #of: PartitionRef;
  readonly #reader: PartitionReader;
  readonly #changeWaiters = new Set<() => void>();
  readonly #since = new SinceCheckpoint();
  #unread: Unread[] = [];
  #onUnreadable: ((record: LogRecord, why: string) => void) | null = null;
  /** Set by the tenure that works on this partition. */
  listener: ((event: EventRecord, verdict: Verdict) => void) | null = null;
  /** Events were evicted before they were read. Set by whoever owns the partition. */
  onMissed: (() => void) | null = null;

  constructor(context: WorkerContext, partition: Partition, epoch: string) {
    this.#log = context.log;
    this.#of = { topic: 'events', partition };
    this.#reader = new PartitionReader({
      log: context.log,
      clock: context.clock,
      partition,
      epoch,
      guard: context.guard,
      hint: () => context.meta.hint(epoch, partition),
      syncHints: (signal) => context.meta.sync(signal),
      isStillInForce: (claimed, signal) => context.meta.isStillInForce(epoch, claimed, signal),
      onEvent: (event, verdict) => {
        if (verdict === 'accepted') {
          this.#fold(event);
          const fault = foreignFault(event);
          if (fault !== null) this.#unreadable(event.record, fault);
        }
        this.listener?.(event, verdict);
        this.#changed();
      },
      onUnreadable: (record, why) => {
        this.#unreadable(record, why);
      },
      onGap: (start) => {
        context.logger.error('events were evicted before they were read', { partition, start });
        this.#since.restart(start);
        this.onMissed?.();
      },
      onError: context.outages.onError,
      onAnswer: context.outages.onAnswer,
    });
    this.#since.restart(this.#reader.position());
  }

  claims(): ClaimHistory {
    return this.#reader.claims();
  }

  since(): SinceCheckpoint {
    return this.#since;
  }

  /** Reports unreadable records from here on, those found since the newest checkpoint first. */
  reportUnreadable(report: (record: LogRecord, why: string) => void): void {
    this.#onUnreadable = report;
    for (const { record, why } of this.#unread.splice(0)) report(record, why);
  }

  /** Next offset to be read. */
  position(): Offset {
    return this.#reader.position();
  }

  /** The first offset that is held, as of the newest read. */
  heldFrom(): Offset {
    return this.#reader.bounds().start;
  }

  reached(offset: Offset, signal: AbortSignal): Promise<boolean> {
    return this.#reader.reached(offset, signal);
  }

  /** Resolves `true` when all that the log holds now was read, `false` as {@link reached}. Errors: those of `Log.bounds`, and `ABORTED`. */
  async reachedEnd(signal: AbortSignal): Promise<boolean> {
    const { end } = await abortable(this.#log.bounds(this.#of), signal);
    return await this.reached(end, signal);
  }

  /** Calls `wake` once after the next record. Returns the way to stop it. */
  onceChanged(wake: () => void): () => void {
    this.#changeWaiters.add(wake);
    return () => this.#changeWaiters.delete(wake);
  }

  stop(): Promise<void> {
    this.listener = null;
    this.onMissed = null;
    this.#onUnreadable = null;
    return this.#reader.stop();
  }

  #unreadable(record: LogRecord, why: string): void {
    if (this.#onUnreadable !== null) this.#onUnreadable(record, why);
    else if (this.#unread.length < MAX_UNREAD) this.#unread.push({ record, why });
  }

  #fold(event: EventRecord): void {
    this.#since.fold(event);
    // Whoever wrote it has read, and reported, what lies before it.
    if (event.body.type === 'checkpoint') this.#unread = [];
  }

  #changed(): void {
    for (const wake of this.#changeWaiters) wake();
    this.#changeWaiters.clear();
  }
}

/** What keeps the message of a foreign producer from being told: readers say an error in its place. `null`: nothing. */
function foreignFault({ owner, body, record }: EventRecord): string | null {
  if (owner !== null || body.type !== 'message') return null;
  const classified = classifyText(decodeText(record.value ?? new Uint8Array(0)));
  return 'fault' in classified ? `no JSON-RPC message: ${classified.fault}` : null;
}
