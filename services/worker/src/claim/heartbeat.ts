/** The worker's sign of life in `meta`: its successors wait for it to stop, gateways choose partitions by it. SPEC: WRK-HEARTBEAT. */
import { makeRecord, META_KEY } from '@throughline/protocol';
import type { Partition } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';

const META = { topic: 'meta', partition: 0 } as const;

export class Heartbeat {
  readonly #context: WorkerContext;
  readonly #partitions: () => readonly Partition[];
  #cancel: (() => void) | null = null;
  #beat = 0;
  #leaving = false;
  #stopped = false;
  #writing: Promise<void> = Promise.resolve();

  /** @param partitions those owned that take new sessions. */
  constructor(context: WorkerContext, partitions: () => readonly Partition[]) {
    this.#context = context;
    this.#partitions = partitions;
  }

  /** Beats now, and again after each interval. Resolves when it was written, or failed and was logged. */
  beat(): Promise<void> {
    if (this.#stopped) return this.#writing;
    this.#cancel?.();
    this.#cancel = this.#context.clock.setTimer(this.#context.config.heartbeatMs, () => {
      void this.beat();
    });
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** No new sessions from here; still alive. */
  leave(): Promise<void> {
    this.#leaving = true;
    return this.beat();
  }

  /** The last sign: successors need not wait. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancel?.();
    await this.#writing;
    const { log, worker, logger } = this.#context;
    try {
      await log.append(META, [makeRecord('worker', META_KEY.worker(worker), null, {})]);
    } catch (error) {
      logger.warn('last heartbeat failed', { error: error instanceof Error ? error.message : String(error) });
    }
  }

  async #write(): Promise<void> {
    const { log, worker, meta, logger } = this.#context;
    const value = JSON.stringify({
      worker,
      epoch: meta.epoch() ?? '',
      partitions: this.#partitions(),
      leaving: this.#leaving,
      beat: ++this.#beat,
    });
    try {
      await log.append(META, [makeRecord('worker', META_KEY.worker(worker), value, {})]);
    } catch (error) {
      logger.warn('heartbeat failed', { error: error instanceof Error ? error.message : String(error) });
    }
  }
}
