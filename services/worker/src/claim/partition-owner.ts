/**
 * One assigned partition on this worker: claims it, serves it, and claims again after a loss, until it is revoked; then
 * it leaves in order: finishes, checkpoints, releases. SPEC: WRK-CLAIM, WRK-LEAVE, WRK-CHECKPOINT.
 */
import { deadline, hasLogCode, sleep } from '@throughline/log';
import { formatCheckpoint, makeRecord, META_KEY } from '@throughline/protocol';
import type { LogRecord, Offset, Partition } from '@throughline/protocol';
import { SessionDirectory } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { copyToDeadLetter } from '../consume/dead-letter.ts';
import { Tenure } from '../consume/tenure.ts';
import { claimPartition } from './claim-partition.ts';
import { EventsWatch } from './events-watch.ts';
import { takeOver } from './take-over.ts';

const META = { topic: 'meta', partition: 0 } as const;
const WAIT_MS = 5000;
const RETRY_MS = 250;
const CLOSE_DEADLINE_MS = 5000;

export interface PartitionOwnerOptions {
  readonly context: WorkerContext;
  readonly partition: Partition;
  /** Ownership began or ended. */
  onOwned(isOwned: boolean): void;
}

export class PartitionOwner {
  readonly #options: PartitionOwnerOptions;
  /** Fires when the partition is to be left. */
  readonly #leaving = new AbortController();
  /** Fires when it is to be left without finishing anything. */
  readonly #abandoned = new AbortController();
  readonly #finished: Promise<void>;
  #owned = false;
  #drainMs = 0;

  constructor(options: PartitionOwnerOptions) {
    this.#options = options;
    this.#finished = this.#run();
  }

  isOwned(): boolean {
    return this.#owned;
  }

  /** Leaves the partition: what runs gets `drainMs` to finish. Resolves when it was released. Idempotent. */
  leave(drainMs: number): Promise<void> {
    this.#drainMs = drainMs;
    this.#leaving.abort();
    if (drainMs === 0) this.#abandoned.abort();
    return this.#finished;
  }

  async #run(): Promise<void> {
    const { context, partition } = this.#options;
    while (!this.#leaving.signal.aborted) {
      try {
        await this.#own();
      } catch (error) {
        if (hasLogCode(error, 'CLOSED')) return;
        context.logger.error('partition failed; claiming it again', {
          partition,
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
        await sleep(context.clock, RETRY_MS, this.#leaving.signal);
      }
    }
  }

  /** From claim to loss or release. */
  async #own(): Promise<void> {
    const { context, partition } = this.#options;
    const { meta, clock, log, logger } = context;
    const epoch = meta.epoch();
    if (epoch === null) throw new TypeError('a worker starts after the epoch is known');
    const over = new AbortController();
    const end = (): void => {
      over.abort();
    };
    const stopEpoch = meta.onEpoch(end);
    this.#leaving.signal.addEventListener('abort', end, { once: true });
    if (this.#leaving.signal.aborted) end();
    const watch = new EventsWatch(context, partition, epoch, (record, why) => {
      this.#unreadable(record, why);
    });
    try {
      const claim = await claimPartition(context, watch, partition, epoch, over.signal);
      this.#leaving.signal.removeEventListener('abort', end);
      if (claim === null) return;
      const directory = new SessionDirectory({
        log,
        clock,
        partitions: [partition],
        maxLifeMs: context.config.maxLifeMs,
        keepRecords: true,
        onError: (error) => {
          logger.warn('log read failed; trying again', {
            topic: 'sessions',
            partition,
            error: error instanceof Error ? error.message : String(error),
          });
        },
      });
      const tenure = new Tenure({
        context,
        partition,
        epoch,
        claim,
        watch,
        directory,
        onLost: (reason) => {
          logger.warn('ownership lost', { partition, claim, reason });
          over.abort();
        },
      });
      try {
        await this.#serve({ watch, directory, tenure, claim, epoch, over });
      } finally {
        this.#setOwned(false);
        over.abort();
        await Promise.all([tenure.close(), directory.close()]);
      }
    } finally {
      stopEpoch();
      await watch.stop();
    }
  }

  async #serve(parts: Serving): Promise<void> {
    const { context, partition } = this.#options;
    const { directory, tenure, over, watch } = parts;
    await directory.sync(over.signal);
    await takeOver({ context, partition, watch, directory, tenure, signal: over.signal });
    await this.#checkpoint(parts, true);
    if (over.signal.aborted) return;
    this.#setOwned(true);
    const stopReading = new AbortController();
    const onOver = (): void => {
      stopReading.abort();
    };
    over.signal.addEventListener('abort', onOver, { once: true });
    const stopChores = this.#startChores(parts);
    const consuming = this.#consume(tenure, stopReading.signal);
    try {
      if (await aborted(this.#leaving.signal, over.signal)) {
        this.#setOwned(false);
        await this.#quiesce(tenure);
      }
    } finally {
      stopChores();
      stopReading.abort();
      await consuming;
    }
    if (over.signal.aborted || this.#abandoned.signal.aborted) return;
    const limit = deadline(context.clock, CLOSE_DEADLINE_MS, over.signal);
    try {
      await raceAbort(this.#checkpoint(parts, true), limit.signal);
      await raceAbort(tenure.release(), limit.signal);
    } finally {
      limit.dispose();
    }
  }

  async #quiesce(tenure: Tenure): Promise<void> {
    const limit = deadline(this.#options.context.clock, this.#drainMs, this.#abandoned.signal);
    try {
      await tenure.quiesce(limit.signal);
    } finally {
      limit.dispose();
    }
  }

  async #consume(tenure: Tenure, signal: AbortSignal): Promise<void> {
    const { context, partition } = this.#options;
    const { log, clock, logger } = context;
    let position = tenure.inbound();
    while (!signal.aborted) {
      try {
        const batch = await log.read({ topic: 'inbound', partition }, position, { waitMs: WAIT_MS, signal });
        if (signal.aborted) return;
        for (const record of batch.records) tenure.takeIn(record, { kind: 'live' });
        position = batch.next;
        tenure.startAt(position);
      } catch (error) {
        if (signal.aborted || hasLogCode(error, 'CLOSED')) return;
        const start = hasLogCode(error, 'OFFSET_OUT_OF_RANGE') ? error.details.start : undefined;
        if (start !== undefined && start > position) {
          logger.error('client messages were evicted before they were served', {
            partition,
            from: position,
            to: start,
          });
          position = start;
        } else {
          logger.warn('log read failed; trying again', {
            topic: 'inbound',
            partition,
            error: error instanceof Error ? error.message : String(error),
          });
          await sleep(clock, RETRY_MS, signal);
        }
      }
    }
  }

  /** Checkpoints when something happened, and at an eighth of retention even when nothing did; ends idle sessions. */
  #startChores(parts: Serving): () => void {
    const { clock, config, log, logger } = this.#options.context;
    const idleMs = log.description.retentionMs / 8;
    let last = clock.monoMs();
    let cancel = (): void => undefined;
    let stopped = false;
    const tick = (): void => {
      parts.tenure.sweep();
      const isDue = clock.monoMs() - last >= idleMs;
      this.#checkpoint(parts, isDue)
        .then((written) => {
          if (written) last = clock.monoMs();
        })
        .catch((error: unknown) => {
          if (!parts.over.signal.aborted)
            logger.warn('checkpoint failed', {
              partition: this.#options.partition,
              error: error instanceof Error ? error.message : String(error),
            });
        })
        .finally(() => {
          if (!stopped) cancel = clock.setTimer(Math.min(config.checkpointMs, Math.max(50, idleMs)), tick);
        });
    };
    cancel = clock.setTimer(Math.min(config.checkpointMs, Math.max(50, idleMs)), tick);
    return () => {
      stopped = true;
      cancel();
    };
  }

  /** Appends a checkpoint and, once it was read back accepted, the hint where readers may begin. */
  async #checkpoint({ tenure, epoch }: Serving, force: boolean): Promise<boolean> {
    const { context, partition } = this.#options;
    const value = tenure.checkpointValue(force);
    if (value === null) return false;
    const offset: Offset | null = await tenure.writeCheckpoint(formatCheckpoint(value));
    if (offset === null) return false;
    const hint = JSON.stringify({ offset, claims: value.claims, worker: context.worker });
    await context.log.append(META, [makeRecord('checkpoint', META_KEY.checkpoint(epoch, partition), hint, {})]);
    return true;
  }

  #setOwned(owned: boolean): void {
    if (this.#owned === owned) return;
    this.#owned = owned;
    this.#options.onOwned(owned);
  }

  #unreadable(record: LogRecord, why: string): void {
    const { context, partition } = this.#options;
    if (!this.#owned) return;
    context.logger.warn('event record is unreadable; copied to dead-letter', { partition, offset: record.offset, why });
    copyToDeadLetter(context.log, { topic: 'events', partition }, record, why).catch((error: unknown) => {
      context.logger.error('copy to dead-letter failed', {
        partition,
        offset: record.offset,
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }
}

interface Serving {
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  readonly tenure: Tenure;
  readonly claim: Offset;
  readonly epoch: string;
  readonly over: AbortController;
}

/** Resolves `true` when `wanted` fires, `false` when `other` fires first. */
function aborted(wanted: AbortSignal, other: AbortSignal): Promise<boolean> {
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

/** Waits for `work`, but no longer than until `signal` fires. */
async function raceAbort(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
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
