/**
 * Commits, for each partition owned, the lowest request that is still open, or how far `inbound` was taken in if none
 * is: what every Kafka tool shows as lag is then work to do. Nothing is decided by it. SPEC: WRK-LAG.
 */
import { ackWithin, errorText } from '@throughline/log';
import type { Membership } from '@throughline/log';
import type { Offset, Partition } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';

/** How far the work on a partition has come. */
export interface Progress {
  /** The next offset of `inbound` that needs work. */
  readonly todo: Offset;
  /** End of `inbound` as of the newest read. */
  readonly end: Offset;
  /** Requests that were taken in and are not answered. */
  readonly open: number;
}

const INTERVAL_MS = 1000;
const DEADLINE_MS = 2000;

export class LagCommits {
  readonly #context: WorkerContext;
  readonly #membership: Membership;
  readonly #progress: () => ReadonlyMap<Partition, Progress>;
  readonly #committed = new Map<Partition, Offset>();
  #cancel = (): void => undefined;
  #isStopped = false;
  #isFailing = false;

  /** @param progress of the partitions that are owned now. */
  constructor(context: WorkerContext, membership: Membership, progress: () => ReadonlyMap<Partition, Progress>) {
    this.#context = context;
    this.#membership = membership;
    this.#progress = progress;
    this.#arm();
  }

  /** A last time, then no more. Resolves within 2 s; never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancel();
    await this.#commit();
  }

  #arm(): void {
    this.#cancel = this.#context.clock.setTimer(INTERVAL_MS, () => {
      void this.#commit().then(() => {
        if (!this.#isStopped) this.#arm();
      });
    });
  }

  /** What has changed. What fails is logged once, and tried again with the next. Never rejects. */
  async #commit(): Promise<void> {
    const progress = this.#progress();
    let lag = 0;
    let open = 0;
    for (const each of progress.values()) {
      lag += Math.max(0, each.end - each.todo);
      open += each.open;
    }
    this.#context.metrics.set('throughline_worker_lag', lag);
    this.#context.metrics.set('throughline_worker_open_requests', open);
    // A partition that was away may have been committed by another meanwhile.
    for (const partition of this.#committed.keys()) if (!progress.has(partition)) this.#committed.delete(partition);
    const changed = [...progress].filter(([partition, { todo }]) => this.#committed.get(partition) !== todo);
    const failures = await Promise.all(changed.map(([partition, { todo }]) => this.#commitOne(partition, todo)));
    const failure = failures.find((each) => each !== null);
    if (failure === undefined) {
      if (changed.length > 0) this.#isFailing = false;
    } else if (!this.#isFailing) {
      this.#isFailing = true;
      this.#context.logger.warn('commit of the lag failed; trying again', { error: failure });
    }
  }

  /** What went wrong, or `null`. */
  async #commitOne(partition: Partition, todo: Offset): Promise<string | null> {
    // About to be lost: its next owner commits.
    if (!this.#membership.assigned().includes(partition)) return null;
    try {
      await ackWithin(this.#context.clock, DEADLINE_MS, this.#membership.commit(partition, todo));
      this.#committed.set(partition, todo);
      return null;
    } catch (error) {
      return errorText(error);
    }
  }
}
