/**
 * Reads a partition onwards, and trusts its own position only as long as nothing can have happened behind its back: after
 * a failure, a change of where its answers come from, or a long sleep it first reads again what it had read last. A topic
 * that was made anew answers an old position with other records and no error. SPEC: TAIL-STEADY.
 */
import { hasLogCode } from '@throughline/log';
import type { Clock, Log, PartitionRef, ReadBatch } from '@throughline/log';
import { anchorChecksum } from '@throughline/protocol';
import type { LogRecord, Offset } from '@throughline/protocol';

export type SteadyRead =
  | ({ readonly kind: 'batch' } & ReadBatch)
  /** Retention has passed the position. */
  | { readonly kind: 'gap'; readonly start: Offset; readonly end: Offset }
  /** The log ends before the position, or holds another record than was read: a view that lags, or a broken history. */
  | { readonly kind: 'doubt' };

/** A process that slept this long beyond its wait does not know what became of the log meanwhile. */
const SLEPT_MS = 5000;

export class SteadyReader {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #of: PartitionRef;
  #last: LogRecord | null = null;
  #source: string | undefined = undefined;
  #isUnsure = false;
  #isInDoubt = false;
  /** By when the next read is to have begun. */
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(log: Log, clock: Clock, of: PartitionRef) {
    this.#log = log;
    this.#clock = clock;
    this.#of = of;
  }

  /** The newest read met a doubt that no later one has removed. */
  isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  /** Errors: those of `Log.read`, but `OFFSET_OUT_OF_RANGE`. */
  async read(
    position: Offset,
    options: { readonly maxBytes?: number; readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<SteadyRead> {
    const now = this.#clock.monoMs();
    if (now > this.#dueMs) this.#isUnsure = true;
    this.#dueMs = now + options.waitMs + SLEPT_MS;
    const last = this.#isUnsure ? this.#last : null;
    let batch: ReadBatch;
    try {
      batch = await this.#log.read(this.#of, last?.offset ?? position, options);
    } catch (error) {
      this.#isUnsure = true;
      if (!hasLogCode(error, 'OFFSET_OUT_OF_RANGE')) throw error;
      const { start = 0, end = start } = error.details;
      if (position > end) return this.#doubt();
      // What was read last is no longer held: there is nothing to compare with.
      this.#last = null;
      if (position < start) return { kind: 'gap', start, end };
      if (last === null) throw error;
      return this.read(position, options);
    }
    if (last !== null && !isSame(batch.records[0], last)) return this.#doubt();
    if (last === null && this.#last !== null && batch.source !== this.#source) {
      // What failed or moved was tried again within the read: it is no less a reason to look.
      this.#isUnsure = true;
      return this.read(position, options);
    }
    this.#source = batch.source;
    this.#isUnsure = false;
    this.#isInDoubt = false;
    this.#last = batch.records.at(-1) ?? this.#last;
    const records = last === null ? batch.records : batch.records.filter(({ offset }) => offset >= position);
    return { kind: 'batch', records, next: Math.max(position, batch.next), bounds: batch.bounds };
  }

  #doubt(): SteadyRead {
    this.#isInDoubt = true;
    return { kind: 'doubt' };
  }
}

/** The same record of the same history. */
export function isSame(one: LogRecord | undefined, other: LogRecord): boolean {
  return one?.offset === other.offset && anchorChecksum(one) === anchorChecksum(other);
}
