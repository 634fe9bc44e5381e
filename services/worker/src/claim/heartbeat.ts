/** The worker's sign of life in `meta`: its successors wait for it to stop, gateways choose partitions by it. SPEC: WRK-HEARTBEAT, WRK-STOOD. */
import { ackWithin, errorText, META } from '@throughline/log';
import { makeRecord, META_KEY } from '@throughline/protocol';
import type { Partition } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';

export class Heartbeat {
  readonly #context: WorkerContext;
  readonly #partitions: () => readonly Partition[];
  #cancel: (() => void) | null = null;
  #beat = 0;
  #leaving = false;
  #stopped = false;
  #writing: Promise<void> = Promise.resolve();
  /** The beat behind the one that is being written, if one is wanted. */
  #next: Promise<void> | null = null;

  /** @param partitions those owned that take new sessions. */
  constructor(context: WorkerContext, partitions: () => readonly Partition[]) {
    this.#context = context;
    this.#partitions = partitions;
  }

  /** Beats now, and again after each interval. Resolves when what is true now was written, or that failed and was logged. */
  beat(): Promise<void> {
    if (this.#stopped) return this.#writing;
    this.#cancel?.();
    const { clock, config } = this.#context;
    const dueMs = clock.monoMs() + config.heartbeatMs;
    this.#cancel = clock.setTimer(config.heartbeatMs, () => {
      this.#reportStand(clock.monoMs() - dueMs);
      void this.beat();
    });
    if (this.#next === null) {
      this.#next = this.#writing.then(() => {
        this.#next = null;
        return this.#write(this.#say());
      });
      this.#writing = this.#next;
    }
    return this.#next;
  }

  /** Nothing else tells a worker that computed, or was not let run, for so long that others took it for gone. */
  #reportStand(stoodMs: number): void {
    const { config, logger } = this.#context;
    const { heartbeatMs, deadAfterMs } = config;
    if (stoodMs < Math.max(heartbeatMs, deadAfterMs - heartbeatMs)) return;
    logger.warn(
      'this process stood still for so long that it counted as gone: if others took its partitions, sessions there ended or moved',
      { stoodMs: Math.round(stoodMs), deadAfterMs },
    );
  }

  /** No new sessions from here; still alive. */
  leave(): Promise<void> {
    this.#leaving = true;
    return this.beat();
  }

  /** The last sign: successors need not wait. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopped) return this.#writing;
    this.#stopped = true;
    this.#cancel?.();
    this.#writing = this.#writing.then(() => this.#write(null));
    return this.#writing;
  }

  #say(): string {
    const { worker, meta } = this.#context;
    return JSON.stringify({
      worker,
      epoch: meta.epoch() ?? '',
      partitions: this.#partitions(),
      leaving: this.#leaving,
      beat: ++this.#beat,
    });
  }

  /** Never rejects, and gives up in time: what comes late says less than the next. */
  async #write(value: string | null): Promise<void> {
    const { log, clock, config, worker, logger } = this.#context;
    try {
      const record = makeRecord('worker', META_KEY.worker(worker), value, {});
      await ackWithin(clock, config.deadAfterMs, log.append(META, [record]));
    } catch (error) {
      logger.warn(value === null ? 'last heartbeat failed' : 'heartbeat failed', { error: errorText(error) });
    }
  }
}
