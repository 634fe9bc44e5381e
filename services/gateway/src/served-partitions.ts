/**
 * Which partitions this gateway serves: those of its start, and those added since, as soon as it has read their
 * `sessions` to the end. Before that it could not say whether a session has ended. SPEC: GW-GROWN.
 */
import { abortable, errorText, sleep } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import type { SessionDirectory } from '@throughline/tail';
import type { Logger } from '@throughline/telemetry';

export interface ServedPartitionsOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly directory: Pick<SessionDirectory, 'follow' | 'syncPartition'>;
  /** Of which the sessions are read. */
  readonly count: number;
}

const RETRY_MS = 250;

export class ServedPartitions {
  readonly #options: ServedPartitionsOptions;
  readonly #stop = new AbortController();
  readonly #stopNews: () => void;
  #count: number;
  #growing: Promise<void> | null = null;

  constructor(options: ServedPartitionsOptions) {
    this.#options = options;
    this.#count = options.count;
    this.#stopNews = options.log.onGrown(() => {
      void this.#grow();
    });
    // It may have grown between the description and this line.
    void this.#grow();
  }

  has(partition: Partition): boolean {
    return partition < this.#count;
  }

  /**
   * Whether `partition` is served; one that this gateway has not heard of is asked for, at the latest until `signal`
   * fires. Errors: `ABORTED`, `LOG_UNAVAILABLE`.
   */
  async serves(partition: Partition, signal: AbortSignal): Promise<boolean> {
    if (this.has(partition)) return true;
    const { log } = this.#options;
    if (partition >= log.description.partitions) await abortable(log.describe(), signal);
    if (partition >= log.description.partitions) return false;
    await abortable(this.#grow(), signal);
    return this.has(partition);
  }

  stop(): void {
    this.#stop.abort();
    this.#stopNews();
  }

  #grow(): Promise<void> {
    this.#growing ??= this.#readAdded().finally(() => {
      this.#growing = null;
    });
    return this.#growing;
  }

  async #readAdded(): Promise<void> {
    const { log, clock, logger, directory } = this.#options;
    const before = this.#count;
    while (this.#count < log.description.partitions && !this.#stop.signal.aborted) {
      directory.follow(this.#count);
      try {
        await directory.syncPartition(this.#count, this.#stop.signal);
        this.#count++;
      } catch (error) {
        logger.warn('the sessions of an added partition cannot be read yet', {
          partition: this.#count,
          error: errorText(error),
        });
        await sleep(clock, RETRY_MS, this.#stop.signal);
      }
    }
    if (this.#count > before) logger.info('partitions were added, and are served', { from: before, to: this.#count });
  }
}
