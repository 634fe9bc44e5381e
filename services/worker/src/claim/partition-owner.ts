/**
 * One assigned partition on this worker: claims it, serves it, and claims again after a loss, until it is revoked; then
 * it leaves in order: finishes, checkpoints, releases. SPEC: WRK-CLAIM, WRK-LEAVE.
 */
import { abortable, deadline, errorStack, errorText, hasLogCode, sleep } from '@throughline/log';
import type { Offset, Partition } from '@throughline/protocol';
import { SessionDirectory } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { consumeInbound } from '../consume/consume-inbound.ts';
import { Tenure } from '../consume/tenure.ts';
import { Checkpointer } from './checkpointer.ts';
import { claimPartition, releaseClaims } from './claim-partition.ts';
import { EventsWatch } from './events-watch.ts';
import type { Progress } from './lag-commits.ts';
import { RetryPace } from './retry-pace.ts';
import { takeOver } from './take-over.ts';

/** Within this a claim of which the log did not say what became of it has come into it, or never does. */
const LATE_CLAIM_MS = 5000;
/** For the last checkpoint and the release, after what ran has finished. */
export const CLOSE_DEADLINE_MS = 5000;

export interface PartitionOwnerOptions {
  readonly context: WorkerContext;
  readonly partition: Partition;
  /** Resolves when this worker has left the partition that it had before; its claim would be replaced otherwise. */
  readonly after: Promise<void>;
  /** Ownership began or ended. */
  onOwned(isOwned: boolean): void;
}

export class PartitionOwner {
  readonly partition: Partition;
  readonly #options: PartitionOwnerOptions;
  /** Fires when the partition is to be left. */
  readonly #leaving = new AbortController();
  /** Fires when nothing is to be waited for any more. */
  readonly #abandoned = new AbortController();
  readonly #finished: Promise<void>;
  /** The epoch in which it is owned. */
  #ownedIn: string | null = null;
  #tenure: Tenure | null = null;
  /** A claim of this worker may be in force and not released. */
  #mayHold = false;
  /** Whether it is known what became of the newest claim, once its append has ended. Never rejects. */
  #claiming = Promise.resolve(true);
  #drainMs = 0;
  readonly #pace: RetryPace;

  constructor(options: PartitionOwnerOptions) {
    this.#options = options;
    this.#pace = new RetryPace(options.context.clock);
    this.partition = options.partition;
    this.#finished = this.#run();
  }

  isOwned(): boolean {
    return this.#ownedIn !== null && this.#ownedIn === this.#options.context.meta.epoch();
  }

  /** A claim of this worker may be in force and not released: its successor waits until this worker counts as gone. */
  mayHold(): boolean {
    return this.#mayHold;
  }

  /** How far the work has come; `null` while the partition is not owned. */
  progress(): Progress | null {
    return this.isOwned() ? (this.#tenure?.progress() ?? null) : null;
  }

  /** Leaves the partition: what runs gets `drainMs` to finish. Resolves when it was released, however long the log does not answer. Idempotent. */
  leave(drainMs: number): Promise<void> {
    if (!this.#leaving.signal.aborted) {
      this.#drainMs = drainMs;
      this.#leaving.abort();
    }
    return this.#finished;
  }

  /** Leaves at once, released or not: for a worker that ends, since its successors need not wait for it. Idempotent. */
  abandon(): Promise<void> {
    this.#abandoned.abort();
    return this.leave(0);
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { context, after } = this.#options;
    await after;
    while (!this.#leaving.signal.aborted) {
      const isClosed = await this.#guarded('partition failed; claiming it again', () => this.#own());
      if (isClosed) return;
    }
    while (this.#mayHold && !this.#abandoned.signal.aborted && context.meta.epoch() !== null) {
      const isClosed = await this.#guarded('release failed; trying again', () => this.#letGo());
      if (isClosed) return;
    }
  }

  /** Runs `work`; `true` if the log is closed. Another failure is logged and waited out. */
  async #guarded(what: string, work: () => Promise<void>): Promise<boolean> {
    const { context, partition } = this.#options;
    try {
      await work();
      this.#pace.succeeded();
    } catch (error) {
      if (hasLogCode(error, 'CLOSED')) return true;
      const isTrouble = isOfTheLog(error);
      // A fault of this program is told each time.
      if (!isTrouble) context.logger.error(what, { partition, error: errorStack(error) });
      const tell = (): void => {
        if (isTrouble) context.logger.warn(what, { partition, error: errorText(error) });
      };
      await this.#pace.failed(tell, this.#abandoned.signal);
    }
    return false;
  }

  /** From claim to loss or release. */
  async #own(): Promise<void> {
    const { context, partition } = this.#options;
    const epoch = context.meta.epoch();
    if (epoch === null) throw new TypeError('a worker starts after the epoch is known');
    const over = new AbortController();
    const stopEnds = this.#endWhenDue(over);
    // Nothing is read, and nothing claimed, from a log that is not what was seen before.
    const isWhole = await context.guard.settled(partition, over.signal);
    const watch = isWhole ? new EventsWatch(context, partition, epoch) : null;
    try {
      if (watch === null) return;
      this.#mayHold = true;
      const claim = await claimPartition(context, watch, partition, epoch, over.signal, (appending) => {
        this.#claiming = appending.then(() => true, isRefused);
      });
      if (claim !== null) await this.#hold({ watch, claim, epoch, over });
    } finally {
      stopEnds();
      over.abort();
      await watch?.stop();
    }
  }

  /** Ends a tenure with its epoch; when the partition is left before it serves; at the latest some time after it is left. */
  #endWhenDue(over: AbortController): () => void {
    const { context } = this.#options;
    let cancel = (): void => undefined;
    const end = (): void => {
      over.abort();
    };
    const onLeaving = (): void => {
      if (this.#ownedIn === null) end();
      else cancel = context.clock.setTimer(this.#drainMs + CLOSE_DEADLINE_MS, end);
    };
    const stopEpoch = context.meta.onEpoch(end);
    this.#leaving.signal.addEventListener('abort', onLeaving, { once: true });
    this.#abandoned.signal.addEventListener('abort', end, { once: true });
    if (this.#leaving.signal.aborted) onLeaving();
    return () => {
      cancel();
      stopEpoch();
      this.#leaving.signal.removeEventListener('abort', onLeaving);
      this.#abandoned.signal.removeEventListener('abort', end);
    };
  }

  async #hold({ watch, claim, epoch, over }: Held): Promise<void> {
    const { context, partition } = this.#options;
    const { log, clock, logger } = context;
    const directory = new SessionDirectory({
      log,
      clock,
      partitions: [partition],
      maxLifeMs: context.config.maxLifeMs,
      keepRecords: true,
      onFinding: (finding, of, readMs) => {
        context.guard.noteView({ topic: 'sessions', partition: of }, finding, readMs);
      },
      onError: context.outages.onError,
      onAnswer: context.outages.onAnswer,
    });
    const tenure = new Tenure({
      context,
      partition,
      claim,
      watch,
      directory,
      onLost: (reason) => {
        logger.warn('ownership lost', { partition, claim, reason });
        over.abort();
      },
    });
    this.#tenure = tenure;
    const { signal } = over;
    // A successor's claim may be among them.
    watch.onMissed = () => {
      logger.warn('ownership in question', { partition, claim, reason: 'events were evicted before they were read' });
      over.abort();
    };
    // The tenure hears of claims from here on; one that came just before it is found like this.
    if (watch.claims().owner()?.claim !== claim) over.abort();
    try {
      // An append that is never answered must not hold up the end.
      await untilAborted(this.#serve({ watch, directory, tenure, epoch, signal }), signal);
    } finally {
      this.#setOwned(null);
      this.#tenure = null;
      over.abort();
      await Promise.all([tenure.close(), directory.close()]);
    }
  }

  async #serve({ watch, directory, tenure, epoch, signal }: Serving): Promise<void> {
    const { context, partition } = this.#options;
    tenure.reportUnreadable();
    const checkpointer = new Checkpointer({ context, partition, epoch, tenure, watch, signal });
    await context.meta.sync(signal);
    await checkpointer.tellClaim(watch.claims().list());
    await directory.sync(signal);
    await takeOver({ context, partition, epoch, watch, directory, tenure, signal });
    await checkpointer.write(true);
    if (signal.aborted) return;
    this.#setOwned(epoch);
    const stopReading = new AbortController();
    const onOver = (): void => {
      stopReading.abort();
    };
    signal.addEventListener('abort', onOver, { once: true });
    checkpointer.start();
    const consuming = consumeInbound(context, { partition, epoch, tenure }, stopReading.signal);
    try {
      if (await firesFirst(this.#leaving.signal, signal)) {
        this.#setOwned(null);
        context.logger.info('leaving', { partition, drainMs: this.#drainMs });
        await this.#quiesce(tenure);
      }
    } finally {
      checkpointer.stop();
      stopReading.abort();
      await consuming;
      await tenure.halt();
    }
    if (signal.aborted) return;
    await checkpointer.write(true);
    const released = await tenure.release();
    context.logger.info('released', { partition, released });
    this.#mayHold = false;
  }

  async #quiesce(tenure: Tenure): Promise<void> {
    const limit = deadline(this.#options.context.clock, this.#drainMs, this.#abandoned.signal);
    try {
      await tenure.quiesce(limit.signal);
    } finally {
      limit.dispose();
    }
  }

  /** After a tenure that did not come to its release. */
  async #letGo(): Promise<void> {
    const { context, partition } = this.#options;
    // With the epoch its claims end, and so does the watch over them: then it is looked again.
    const over = new AbortController();
    const stopEpoch = context.meta.onEpoch(() => {
      over.abort();
    });
    const signal = AbortSignal.any([over.signal, this.#abandoned.signal]);
    const watch = new EventsWatch(context, partition, context.meta.epoch() ?? '');
    try {
      // A claim that is still on its way comes into force when nobody here wants it any more, and would keep out all others.
      const isKnown = await abortable(this.#claiming, signal).catch(() => false);
      if (!isKnown) await sleep(context.clock, LATE_CLAIM_MS, signal);
      this.#mayHold = !(await releaseClaims(context, watch, partition, signal));
    } finally {
      stopEpoch();
      await watch.stop();
    }
  }

  #setOwned(epoch: string | null): void {
    if (this.#ownedIn === epoch) return;
    this.#ownedIn = epoch;
    this.#options.onOwned(epoch !== null);
  }
}

interface Held {
  readonly watch: EventsWatch;
  readonly claim: Offset;
  readonly epoch: string;
  readonly over: AbortController;
}

interface Serving {
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  readonly tenure: Tenure;
  readonly epoch: string;
  readonly signal: AbortSignal;
}

/** Resolves `true` when `wanted` fires, `false` when `other` fires first. */
function firesFirst(wanted: AbortSignal, other: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (): void => {
      wanted.removeEventListener('abort', finish);
      other.removeEventListener('abort', finish);
      resolve(wanted.aborted && !other.aborted);
    };
    wanted.addEventListener('abort', finish, { once: true });
    other.addEventListener('abort', finish, { once: true });
    if (wanted.aborted || other.aborted) finish();
  });
}

/** What is refused is not in the log; of any other failure nobody knows. */
function isRefused(error: unknown): boolean {
  return hasLogCode(error, 'APPEND_REFUSED');
}

/** Waits for `work`, but no longer than until `signal` fires; what it rejects with after that is nobody's. */
async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  work.catch(() => undefined);
  let onAbort = (): void => undefined;
  const fired = new Promise<void>((resolve) => {
    onAbort = resolve;
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) resolve();
  });
  try {
    await Promise.race([work, fired]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** What is no fault of this process, and nothing that it was set up wrongly: a log that does not answer, has no room, or leaves an append in doubt. */
function isOfTheLog(error: unknown): boolean {
  if (hasLogCode(error, 'APPEND_REFUSED'))
    return !['too-large', 'not-authenticated', 'not-authorized'].includes(error.details.reason ?? 'other');
  return hasLogCode(error, 'LOG_UNAVAILABLE') || hasLogCode(error, 'APPEND_UNKNOWN');
}
