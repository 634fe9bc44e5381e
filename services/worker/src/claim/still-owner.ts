/**
 * Whether an owner may have been replaced unseen. Others wait for it only as long as its heartbeats come: when they were
 * missing for that long, also if they are back by now, only `events`, read to its end, says whose the partition is. Until
 * then nothing may run that leaves no record of its start: it would run at the successor's as well. SPEC: WRK-SLEPT.
 */
import { abortable, errorText, sleep } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';
import type { EventsWatch } from './events-watch.ts';

const RETRY_MS = 250;

export class StillOwner {
  readonly #context: WorkerContext;
  readonly #partition: Partition;
  readonly #watch: EventsWatch;
  /** Fires when the partition is owned no more. */
  readonly #over: AbortSignal;
  readonly #stop: () => void;
  #seenMs: number;
  /** How often the heartbeats were missing for too long. */
  #lapses = 0;
  /** As many of them are known to have cost nothing. */
  #settled = 0;
  #looking: Promise<boolean> | null = null;

  constructor(context: WorkerContext, partition: Partition, watch: EventsWatch, over: AbortSignal) {
    this.#context = context;
    this.#partition = partition;
    this.#watch = watch;
    this.#over = over;
    const { meta, worker, config, clock } = context;
    this.#seenMs = meta.seenMs(worker) ?? clock.monoMs();
    this.#stop = meta.onChange(() => {
      const seenMs = meta.seenMs(worker) ?? this.#seenMs;
      if (seenMs - this.#seenMs > config.deadAfterMs) this.#lapses++;
      this.#seenMs = seenMs;
    });
  }

  /** Nobody can have taken the partition without this worker having read of it. */
  isSure(): boolean {
    const { meta, worker, config } = this.#context;
    return this.#lapses === this.#settled && meta.isAlive(worker, config.deadAfterMs);
  }

  /** Resolves `true` once `events` was read as far as it goes now, and it is still owned; `false` if it is not, or `signal` fires. */
  async look(signal: AbortSignal): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return abortable(this.#looking, signal).catch(() => false);
  }

  /** Idempotent. */
  stop(): void {
    this.#stop();
  }

  /** Never rejects. */
  async #look(): Promise<boolean> {
    const { clock, logger } = this.#context;
    while (!this.#over.aborted) {
      const lapses = this.#lapses;
      try {
        const isRead = await this.#watch.reachedEnd(this.#over);
        this.#settled = lapses;
        return isRead && !this.#over.aborted;
      } catch (error) {
        if (this.#over.aborted) break;
        logger.warn('whether the partition is still owned cannot be seen; trying again', {
          partition: this.#partition,
          error: errorText(error),
        });
        await sleep(clock, RETRY_MS, this.#over);
      }
    }
    return false;
  }
}
