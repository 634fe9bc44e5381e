/** Reads one stream of a session from a place to the end of the log, event by event. */
import { abortable, deadline, LogError } from '@throughline/log';
import type { Clock, Log, PartitionRef } from '@throughline/log';
import type { LogRecord, Offset } from '@throughline/protocol';

/** How long a log that is said to go on is waited for before it is asked again. */
export const WAIT_MS = 500;

export interface ScanOptions {
  readonly log: Pick<Log, 'read'>;
  readonly of: PartitionRef;
  readonly from: Offset;
  /** Everything below is known to be in the log: a log that seems to end before is read again. Default: its end. */
  readonly atLeast: Offset;
  readonly signal: AbortSignal;
}

/**
 * Every record from `from` to the end of the log as it is when the scan begins, and to `atLeast`. Resolves with the place
 * behind the last one. Errors: those of `Log.read`.
 */
export async function scan(options: ScanOptions, take: (record: LogRecord) => Promise<void> | void): Promise<Offset> {
  const { log, of, from, atLeast, signal } = options;
  let position = from;
  let below = atLeast;
  let isFirst = true;
  while (isFirst || position < below) {
    const batch = await log.read(of, position, { signal, ...(isFirst ? {} : { waitMs: WAIT_MS }) });
    if (isFirst) below = Math.max(below, batch.bounds.end);
    isFirst = false;
    for (const record of batch.records) await take(record);
    position = batch.next;
  }
  return position;
}

/** Runs `work` with a signal that fires after `ms`: then it rejects with `LOG_UNAVAILABLE`. */
export async function inTime<T>(clock: Clock, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = deadline(clock, ms);
  try {
    return await abortable(work(limit.signal), limit.signal);
  } catch (error) {
    if (!limit.expired()) throw error;
    throw new LogError('LOG_UNAVAILABLE', `the log could not be read to its end within ${ms} ms`, {}, error);
  } finally {
    limit.dispose();
  }
}
