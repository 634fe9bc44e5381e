/**
 * Watches what appends are acknowledged at. An offset at or below what this process had read, or had acknowledged,
 * when the append started proves that the history of the partition broke: then a new epoch is proposed, and nothing is
 * served until it is in force. Suspicion alone changes nothing. SPEC: GW-BREAK.
 */
import { provesBreak } from '@throughline/history';
import { LogError, sleep } from '@throughline/log';
import type { Appended, Clock, Log, PartitionRef, Random } from '@throughline/log';
import type { Epoch, Offset, RecordInput } from '@throughline/protocol';
import type { Meta } from '@throughline/tail';
import type { Logger } from '@throughline/telemetry';

export interface HistoryGuardOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly meta: Pick<Meta, 'proposeEpoch'>;
  readonly epoch: Epoch;
}

const PROPOSE_AGAIN_MS = 1000;

export class HistoryGuard {
  readonly #options: HistoryGuardOptions;
  /** Highest offset read or acknowledged in this epoch, by partition. */
  readonly #marks = new Map<string, Offset>();
  readonly #stop = new AbortController();
  #epoch: Epoch;
  #isBroken = false;

  constructor(options: HistoryGuardOptions) {
    this.#options = options;
    this.#epoch = options.epoch;
  }

  /** The history of the epoch in force is proved to be broken. */
  isBroken(): boolean {
    return this.#isBroken;
  }

  /** A new history begins: offsets of the former one say nothing about it. */
  startEpoch(epoch: Epoch): void {
    this.#epoch = epoch;
    this.#isBroken = false;
    this.#marks.clear();
  }

  /** This process has read the record at `offset`. */
  noteRead(of: PartitionRef, offset: Offset): void {
    const key = nameOf(of);
    this.#marks.set(key, Math.max(this.#marks.get(key) ?? -1, offset));
  }

  /** `Log.append`, judged when its ack comes, however late. Errors: those of `Log.append`; `LOG_UNAVAILABLE` if its ack is proof. */
  async append(to: PartitionRef, records: readonly RecordInput[]): Promise<Appended> {
    const epoch = this.#epoch;
    const highest = this.#marks.get(nameOf(to)) ?? -1;
    const appended = await this.#options.log.append(to, records);
    const first = appended.offsets[0];
    if (first === undefined || epoch !== this.#epoch) return appended;
    if (provesBreak(first, highest)) {
      this.#break(to, first, highest);
      throw new LogError('LOG_UNAVAILABLE', 'the history of the log broke');
    }
    this.noteRead(to, appended.offsets.at(-1) ?? first);
    return appended;
  }

  stop(): void {
    this.#stop.abort();
  }

  #break(at: PartitionRef, acked: Offset, highest: Offset): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const { topic, partition } = at;
    this.#options.logger.error('the history of the log broke: an append was acknowledged below what was read before', {
      topic,
      partition,
      acked,
      highest,
      epoch: this.#epoch,
    });
    void this.#propose(this.#epoch, `${topic}/${partition} acknowledged ${acked} at or below ${highest}`);
  }

  /** Proposes until the epoch is another: a candidate that comes too late is void by itself. */
  async #propose(epoch: Epoch, reason: string): Promise<void> {
    const { meta, random, clock, logger } = this.#options;
    const { signal } = this.#stop;
    while (this.#isBroken && epoch === this.#epoch && !signal.aborted) {
      try {
        await meta.proposeEpoch(random, epoch, reason);
      } catch (error) {
        logger.warn('the new epoch could not be proposed; trying again', {
          error: error instanceof Error ? error.message : String(error),
        });
      }
      await sleep(clock, PROPOSE_AGAIN_MS, signal);
    }
  }
}

function nameOf({ topic, partition }: PartitionRef): string {
  return `${topic}/${partition}`;
}
