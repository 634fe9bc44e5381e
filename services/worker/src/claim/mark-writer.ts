/**
 * Tells in `meta` how far the history of each owned partition has come, so that also a process that has read nothing of
 * it can prove that it broke. Owners are enough: they read both topics. SPEC: WRK-MARKS.
 */
import { ackWithin, errorText } from '@throughline/log';
import type { HistoryMark, Partition } from '@throughline/protocol';
import type { GuardedRef } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';

const INTERVAL_MS = 2000;

export class MarkWriter {
  readonly #context: WorkerContext;
  readonly #owned: () => readonly Partition[];
  #cancel = (): void => undefined;
  #isStopped = false;

  /** Writes now and then until it is stopped. */
  constructor(context: WorkerContext, owned: () => readonly Partition[]) {
    this.#context = context;
    this.#owned = owned;
    this.#arm();
  }

  /** Idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  /** What has changed for these partitions, in one append. Never rejects, and gives up in time: the next one says more. */
  async write(partitions: readonly Partition[]): Promise<void> {
    const { meta, guard, clock, config, logger } = this.#context;
    const epoch = meta.epoch();
    if (epoch === null || guard.isBroken()) return;
    const changed: (readonly [GuardedRef, HistoryMark])[] = [];
    for (const partition of partitions)
      for (const topic of ['events', 'inbound'] as const) {
        const of = { topic, partition };
        const [mark, told] = [guard.mark(of), meta.mark(epoch, of)];
        if (mark !== null && (mark.end !== told?.end || mark.anchor?.offset !== told.anchor?.offset))
          changed.push([of, mark]);
      }
    try {
      await ackWithin(clock, config.deadAfterMs, meta.tellMarks(epoch, changed));
    } catch (error) {
      logger.warn('the marks of the history could not be written; trying again', { error: errorText(error) });
    }
  }

  #arm(): void {
    this.#cancel = this.#context.clock.setTimer(INTERVAL_MS, () => {
      void this.write(this.#owned()).then(() => {
        if (!this.#isStopped) this.#arm();
      });
    });
  }
}
