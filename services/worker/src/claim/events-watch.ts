/**
 * The owner's own reading of `events[p]`: claims, the newest checkpoint, and what happened to requests since. It sees
 * its own records accepted, or fenced. SPEC: WRK-WATCH.
 */
import { RequestLedger } from '@throughline/history';
import type { ClaimHistory, Verdict } from '@throughline/history';
import { readCheckpoint } from '@throughline/protocol';
import type { Checkpoint, EventRecord, LogRecord, Offset, Partition } from '@throughline/protocol';
import { PartitionReader } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';

export class EventsWatch {
  readonly #reader: PartitionReader;
  readonly #changeWaiters = new Set<() => void>();
  #ledger = new RequestLedger(null);
  #checkpoint: Checkpoint | null = null;
  /** Set by the tenure that works on this partition. */
  listener: ((event: EventRecord, verdict: Verdict) => void) | null = null;

  constructor(
    context: WorkerContext,
    partition: Partition,
    epoch: string,
    onUnreadable: (record: LogRecord, why: string) => void,
  ) {
    this.#reader = new PartitionReader({
      log: context.log,
      clock: context.clock,
      partition,
      epoch,
      hint: () => context.meta.hint(epoch, partition),
      onEvent: (event, verdict) => {
        if (verdict === 'accepted') this.#fold(event);
        this.listener?.(event, verdict);
        for (const wake of this.#changeWaiters) wake();
        this.#changeWaiters.clear();
      },
      onUnreadable,
      onError: (error) => {
        context.logger.warn('log read failed; trying again', {
          partition,
          error: error instanceof Error ? error.message : String(error),
        });
      },
    });
  }

  claims(): ClaimHistory {
    return this.#reader.claims();
  }

  ledger(): RequestLedger {
    return this.#ledger;
  }

  /** The newest accepted checkpoint; `null` if there was none since the log began. */
  checkpoint(): Checkpoint | null {
    return this.#checkpoint;
  }

  position(): Offset {
    return this.#reader.position();
  }

  reached(offset: Offset, signal: AbortSignal): Promise<boolean> {
    return this.#reader.reached(offset, signal);
  }

  /** Calls `wake` once after the next record. Returns the way to stop it. */
  onceChanged(wake: () => void): () => void {
    this.#changeWaiters.add(wake);
    return () => this.#changeWaiters.delete(wake);
  }

  stop(): Promise<void> {
    this.listener = null;
    return this.#reader.stop();
  }

  #fold(event: EventRecord): void {
    if (event.body.type === 'checkpoint') {
      const checkpoint = readCheckpoint(event.record);
      if (checkpoint !== null) {
        this.#checkpoint = checkpoint;
        this.#ledger = new RequestLedger(checkpoint);
        return;
      }
    }
    this.#ledger.fold(event);
  }
}
