/**
 * A compacted view: the newest record of every key of one partition, followed as the log grows. Built on `read` alone,
 * so it is the same on every driver.
 */
import type { LogRecord, Offset } from '@throughline/protocol';
import { decodeText } from '@throughline/protocol';
import { abortable, sleep } from './clock.ts';
import type { Clock } from './clock.ts';
import { hasLogCode, LogError } from './errors.ts';
import type { Log, PartitionRef } from './port.ts';

export interface ViewOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly of: PartitionRef;
  /** Called for each record in log order, tombstones (`value === null`) included. Must not throw. */
  apply(key: string, record: LogRecord): void;
  /** Called when a read fails and is tried again. */
  onError?(error: unknown): void;
  readonly pollMs?: number;
}

export interface View {
  /** Next offset to be read: everything before it was applied. */
  position(): Offset;
  /**
   * Resolves when everything below the end acknowledged at the time of the call was applied.
   * Errors: `ABORTED`, `CLOSED` (the view or its log), `LOG_UNAVAILABLE`.
   */
  sync(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const RETRY_MS = 250;

/** Starts to follow. The first {@link View.sync} makes it complete. */
export function openView(options: ViewOptions): View {
  const { log, clock, of } = options;
  const closing = new AbortController();
  const waiters = new Set<{ readonly until: Offset; readonly wake: () => void }>();
  let position: Offset = 0;
  let hasEnded = false;
  const wakeWaiters = (): void => {
    for (const waiter of waiters) {
      if (hasEnded || position >= waiter.until) {
        waiters.delete(waiter);
        waiter.wake();
      }
    }
  };
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const batch = await log.read(of, position, { waitMs: options.pollMs ?? 1000, signal: closing.signal });
        for (const record of batch.records) if (record.key !== null) options.apply(decodeText(record.key), record);
        position = batch.next;
        wakeWaiters();
      } catch (error) {
        // A log that was closed does not come back: waiters learn it, nothing is tried again.
        if (closing.signal.aborted || hasLogCode(error, 'CLOSED')) break;
        if (
          hasLogCode(error, 'OFFSET_OUT_OF_RANGE') &&
          error.details.start !== undefined &&
          position < error.details.start
        ) {
          position = error.details.start;
          continue;
        }
        options.onError?.(error);
        await sleep(clock, RETRY_MS, closing.signal);
      }
    }
    hasEnded = true;
    wakeWaiters();
  };
  const finished = run();
  return {
    position: () => position,
    async sync(signal) {
      const { end } = await abortable(log.bounds(of), signal);
      if (position >= end) return;
      await new Promise<void>((resolve, reject) => {
        const onAbort = (): void => {
          waiters.delete(waiter);
          reject(new LogError('ABORTED', 'the wait for the view was aborted'));
        };
        const waiter = {
          until: end,
          wake: (): void => {
            signal?.removeEventListener('abort', onAbort);
            if (position >= end) resolve();
            else reject(new LogError('CLOSED', 'the view was closed'));
          },
        };
        waiters.add(waiter);
        if (signal?.aborted) onAbort();
        else signal?.addEventListener('abort', onAbort, { once: true });
        wakeWaiters();
      });
    },
    async close() {
      closing.abort();
      await finished;
    },
  };
}
