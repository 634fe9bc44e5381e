/**
 * Tells of reads that fail, once an outage and not once a try: when a partition does not answer, and when it answers
 * again. SPEC: TAIL-OUTAGE.
 */
import { errorText, LogError } from '@throughline/log';
import type { Clock, PartitionRef } from '@throughline/log';
import { partitionName } from './partition-name.ts';

export interface ReadOutagesOptions {
  readonly clock: Clock;
  readonly logger: {
    info(event: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(event: string, fields?: Readonly<Record<string, unknown>>): void;
  };
  /** Each failed read, by its code. */
  onFailure?(code: string): void;
}

interface Outage {
  readonly sinceMs: number;
  lastMs: number;
  /** The first answer after the last failure. */
  answeredMs: number | null;
}

/** A partition that answered one read and failed another just before does not answer yet. */
const QUIET_MS = 1000;

export class ReadOutages {
  readonly #options: ReadOutagesOptions;
  readonly #outages = new Map<string, Outage>();
  #answeredMs: number;

  constructor(options: ReadOutagesOptions) {
    this.#options = options;
    this.#answeredMs = options.clock.monoMs();
  }

  /**
   * Milliseconds since a read of any partition was answered last, or since the start. Readers that follow a partition
   * are answered every 5 s at least, also where nothing comes.
   */
  silentMs(): number {
    return this.#options.clock.monoMs() - this.#answeredMs;
  }

  /** A read failed, and is tried again. */
  readonly onError = (error: unknown, of: PartitionRef): void => {
    const { clock, logger, onFailure } = this.#options;
    const code = error instanceof LogError ? error.code : 'unknown';
    onFailure?.(code);
    const now = clock.monoMs();
    const outage = this.#outages.get(partitionName(of));
    if (outage !== undefined) {
      outage.lastMs = now;
      outage.answeredMs = null;
      return;
    }
    this.#outages.set(partitionName(of), { sinceMs: now, lastMs: now, answeredMs: null });
    const { topic, partition } = of;
    logger.warn('log read failed; trying until it answers', { topic, partition, code, error: errorText(error) });
  };

  /** A read was answered. Called for every one. */
  readonly onAnswer = (of: PartitionRef): void => {
    const { clock, logger } = this.#options;
    const now = clock.monoMs();
    this.#answeredMs = now;
    const outage = this.#outages.get(partitionName(of));
    if (outage === undefined) return;
    outage.answeredMs ??= now;
    if (now - outage.lastMs < QUIET_MS) return;
    this.#outages.delete(partitionName(of));
    const { topic, partition } = of;
    logger.info('the log answers again', {
      topic,
      partition,
      lastedMs: Math.round(outage.answeredMs - outage.sinceMs),
    });
  };
}
