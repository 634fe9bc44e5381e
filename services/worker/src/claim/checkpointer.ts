/**
 * Writes the checkpoints of a tenure: every few seconds when something happened or the newest was evicted, at an eighth
 * of retention when nothing did. What it tells in `meta` it tells only after the log has accepted it. SPEC: WRK-CHECKPOINT.
 */
import { ackWithin, errorText, META } from '@throughline/log';
import { formatCheckpoint, makeRecord, META_KEY } from '@throughline/protocol';
import type { Offset, Partition } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';
import type { Tenure } from '../consume/tenure.ts';
import type { EventsWatch } from './events-watch.ts';

const MIN_INTERVAL_MS = 50;

export interface CheckpointerOptions {
  readonly context: WorkerContext;
  readonly partition: Partition;
  readonly epoch: string;
  readonly tenure: Tenure;
  readonly watch: Pick<EventsWatch, 'heldFrom'>;
  /** Fires when the tenure is over. */
  readonly signal: AbortSignal;
}

export class Checkpointer {
  readonly #options: CheckpointerOptions;
  readonly #idleMs: number;
  readonly #intervalMs: number;
  #lastMs: number;
  #lastOffset: Offset | null = null;
  #dueMs = 0;
  #cancel = (): void => undefined;
  #isStopped = false;

  constructor(options: CheckpointerOptions) {
    const { log, clock, config } = options.context;
    this.#options = options;
    this.#idleMs = log.description.retentionMs / 8;
    this.#intervalMs = Math.min(config.checkpointMs, Math.max(MIN_INTERVAL_MS, this.#idleMs / 2));
    this.#lastMs = clock.monoMs();
  }

  /** Writes one now and then until it is stopped, and has sessions swept. */
  start(): void {
    if (!this.#isStopped) this.#arm();
  }

  /** Idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  /**
   * Appends a checkpoint and, once it was read back accepted, the hint where readers may begin.
   * @param force even if nothing happened. Rejects if the hint could not be written.
   */
  async write(force: boolean): Promise<void> {
    const { context, tenure } = this.#options;
    const { clock } = context;
    const value = tenure.checkpointValue(force);
    if (value === null) return;
    const startMs = clock.monoMs();
    const offset = await tenure.writeCheckpoint(formatCheckpoint(value));
    if (offset === null) return;
    this.#lastMs = startMs;
    this.#lastOffset = offset;
    await this.#tell(offset, value.claims);
  }

  /**
   * Adds this claim to what is told in `meta`, where readers may begin being left as it was: should this owner die before
   * its first checkpoint, and retention take its claim, readers still know it. Nothing to add to in a new epoch.
   */
  async tellClaim(claims: readonly Offset[]): Promise<void> {
    const { context, partition, epoch } = this.#options;
    const known = context.meta.hint(epoch, partition);
    if (known !== null) await this.#tell(known.offset, claims);
  }

  async #tell(offset: Offset, claims: readonly Offset[]): Promise<void> {
    const { context, partition, epoch } = this.#options;
    const { log, clock, config, worker } = context;
    const hint = JSON.stringify({ offset, claims, worker });
    const record = makeRecord('checkpoint', META_KEY.checkpoint(epoch, partition), hint, {});
    await ackWithin(clock, config.appendTimeoutMs, log.append(META, [record]));
  }

  /** By hand, or by size: who comes later finds neither owner nor place to begin until there is another. */
  #isEvicted(): boolean {
    return this.#lastOffset !== null && this.#lastOffset < this.#options.watch.heldFrom();
  }

  #arm(): void {
    const { clock } = this.#options.context;
    this.#dueMs = clock.monoMs() + this.#intervalMs;
    this.#cancel = clock.setTimer(this.#intervalMs, () => {
      void this.#tick();
    });
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const { context, partition, tenure, signal } = this.#options;
    const { clock, logger } = context;
    try {
      // A process that slept has not yet read what came meanwhile: nobody is idle before it has.
      if (clock.monoMs() - this.#dueMs <= 2 * this.#intervalMs) tenure.sweep();
      await this.write(this.#isEvicted() || clock.monoMs() - this.#lastMs + this.#intervalMs >= this.#idleMs);
    } catch (error) {
      if (!signal.aborted) logger.warn('checkpoint failed', { partition, error: errorText(error) });
    }
    if (!this.#isStopped && !signal.aborted) this.#arm();
  }
}
