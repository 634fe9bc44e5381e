/** The tails of one process and epoch: made on first use, shared by all connections, stopped together. SPEC: TAIL-SHARED. */
import type { Epoch, Offset, Partition } from '@throughline/protocol';
import { abortable, hasLogCode } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import { CatchUpPool } from './catch-up-pool.ts';
import type { HistoryGuard } from './history-guard.ts';
import type { Meta } from './meta.ts';
import { PartitionTail } from './partition-tail.ts';
import type { PartitionTailOptions } from './partition-tail.ts';

export interface TailSetOptions extends Pick<
  PartitionTailOptions,
  'onVerdict' | 'onError' | 'onAnswer' | 'onSlowReader'
> {
  readonly log: Log;
  readonly clock: Clock;
  readonly meta: Meta;
  readonly epoch: Epoch;
  /** Bytes of hot cache over all partitions. */
  readonly cacheBytes: number;
  readonly catchUpReaders: number;
  readonly guard?: Pick<HistoryGuard, 'noteRead' | 'suspect' | 'trusts'>;
}

export class TailSet {
  readonly epoch: Epoch;
  readonly #options: TailSetOptions;
  readonly #pool: CatchUpPool;
  readonly #tails = new Map<Partition, PartitionTail>();
  #stopped = false;
  readonly #stopNews: () => void;

  constructor(options: TailSetOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    this.#pool = new CatchUpPool(options.catchUpReaders);
    this.#stopNews = options.log.onGrown(() => {
      for (const tail of this.#tails.values()) tail.resize(this.#share());
    });
  }

  /**
   * The tail of `partition`, once it has read up to what was acknowledged at the time of the call. `null` if `signal`
   * fires first, the set was stopped, or the history of the partition is in doubt. Errors: `LOG_UNAVAILABLE`.
   */
  async get(partition: Partition, signal: AbortSignal): Promise<PartitionTail | null> {
    if (this.#stopped) return null;
    const known = this.#tails.get(partition);
    const tail = known ?? this.#start(partition);
    if (!tail.isReady) {
      const end = await this.#end(partition, signal);
      if (end === null || !(await tail.reached(end, signal))) return null;
      tail.isReady = true;
    }
    if (tail.isInDoubt() || (await this.#options.guard?.trusts(partition, signal)) === false) return null;
    return tail.isStopped ? null : tail;
  }

  cacheBytes(): number {
    let bytes = 0;
    for (const tail of this.#tails.values()) bytes += tail.cacheBytes();
    return bytes;
  }

  /** Records known to be in the log and not yet read, over all tails. */
  lag(): number {
    let lag = 0;
    for (const tail of this.#tails.values()) lag += Math.max(0, tail.bounds().end - tail.position());
    return lag;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopNews();
    await Promise.all([...this.#tails.values()].map((tail) => tail.stop()));
  }

  /** The acknowledged end of `events[partition]`; `null` if `signal` fires first. */
  async #end(partition: Partition, signal: AbortSignal): Promise<Offset | null> {
    try {
      return (await abortable(this.#options.log.bounds({ topic: 'events', partition }), signal)).end;
    } catch (error) {
      if (hasLogCode(error, 'ABORTED')) return null;
      throw error;
    }
  }

  /** Bytes of each tail. */
  #share(): number {
    return Math.ceil(this.#options.cacheBytes / this.#options.log.description.partitions);
  }

  #start(partition: Partition): PartitionTail {
    const { log, clock, meta, epoch, onVerdict, onError, onAnswer, onSlowReader, guard } = this.#options;
    const tail = new PartitionTail({
      log,
      clock,
      partition,
      epoch,
      cacheBytes: this.#share(),
      pool: this.#pool,
      hint: () => meta.hint(epoch, partition),
      syncHints: (signal) => meta.sync(signal),
      isStillInForce: (claimed, signal) => meta.isStillInForce(epoch, claimed, signal),
      ...(onVerdict === undefined ? {} : { onVerdict }),
      ...(onError === undefined ? {} : { onError }),
      ...(onAnswer === undefined ? {} : { onAnswer }),
      ...(onSlowReader === undefined ? {} : { onSlowReader }),
      ...(guard === undefined ? {} : { guard }),
    });
    this.#tails.set(partition, tail);
    return tail;
  }
}
