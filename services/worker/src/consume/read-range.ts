/** Reads a closed range of `inbound` in order. */
import { readRange as readRangeOf } from '@throughline/log';
import type { Log } from '@throughline/log';
import type { LogRecord, Offset, Partition } from '@throughline/protocol';

export interface ReadRangeOptions {
  readonly log: Log;
  readonly partition: Partition;
  readonly from: Offset;
  readonly below: Offset;
  readonly signal: AbortSignal;
  /** A batch was read that ends with `last`, where the log ended at `end`. */
  onRead(last: LogRecord | null, end: Offset): void;
  /** Records below `start` are no longer held. */
  onEvicted(start: Offset): void;
}

/** Errors: those of `Log.read`, but for what retention took. */
export function readRange({ partition, ...options }: ReadRangeOptions): AsyncGenerator<LogRecord, void, undefined> {
  return readRangeOf({ ...options, of: { topic: 'inbound', partition } });
}
