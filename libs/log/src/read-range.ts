/** Reads a closed range of a partition in order. Records that retention has taken are told, never skipped in silence. */
import type { LogRecord, Offset } from '@throughline/protocol';
import { hasLogCode } from './errors.ts';
import type { Log, PartitionRef } from './port.ts';

export interface ReadRangeOptions {
  readonly log: Pick<Log, 'read'>;
  readonly of: PartitionRef;
  readonly from: Offset;
  readonly below: Offset;
  readonly signal: AbortSignal;
  /** A batch was read that ends with `last`, where the log ended at `end`. */
  onRead?(last: LogRecord | null, end: Offset): void;
  /** Records from `from` on, where this reader stood, and below `start` are no longer held. */
  onEvicted?(start: Offset, from: Offset): void;
}

/** Errors: those of `Log.read`, but for what retention took. */
export async function* readRange(options: ReadRangeOptions): AsyncGenerator<LogRecord, void, undefined> {
  const { log, of, below, signal } = options;
  let position = options.from;
  while (position < below) {
    try {
      const batch = await log.read(of, position, { signal });
      options.onRead?.(batch.records.at(-1) ?? null, batch.bounds.end);
      for (const record of batch.records) {
        if (record.offset >= below) return;
        yield record;
      }
      if (batch.next === position) return;
      position = batch.next;
    } catch (error) {
      const start = hasLogCode(error, 'OFFSET_OUT_OF_RANGE') ? error.details.start : undefined;
      if (start === undefined || start <= position) throw error;
      options.onEvicted?.(start, position);
      position = start;
    }
  }
}
