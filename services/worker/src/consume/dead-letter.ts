/** Records that cannot be read are never dropped in silence: a copy, with where it stood and why. SPEC: WRK-POISON. */
import { DEAD_LETTER, errorText, hasLogCode } from '@throughline/log';
import type { Log, PartitionRef } from '@throughline/log';
import { encodeText } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import type { WorkerContext } from '../context.ts';

const MAX_WHY_CHARS = 200;

/** Copies that are under way at once, before the reader that finds the records has to wait. */
const MAX_COPYING = 64;

/** Errors: those of `Log.append`. */
async function copy(log: Log, from: PartitionRef, record: LogRecord, why: string): Promise<void> {
  const headers = [
    ...record.headers,
    ['dead-letter-from', encodeText(`${from.topic}/${from.partition}/${record.offset}`)] as const,
    ['dead-letter-why', encodeText(why.slice(0, MAX_WHY_CHARS))] as const,
  ];
  try {
    await log.append(DEAD_LETTER, [{ key: record.key, value: record.value, headers }]);
  } catch (error) {
    if (!hasLogCode(error, 'APPEND_REFUSED') || error.details.reason !== 'too-large') throw error;
    // The record filled the log's bound alone: where it stands is still told.
    await log.append(DEAD_LETTER, [{ key: record.key, value: null, headers: headers.slice(-2) }]);
  }
}

export class DeadLetters {
  readonly #context: WorkerContext;
  readonly #waiting = new Set<() => void>();
  #copying = 0;

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** Counts, logs and copies a record. Never throws: a copy that fails is logged. */
  put(from: PartitionRef, record: LogRecord, why: string): void {
    const { log, logger, metrics } = this.#context;
    const place = { topic: from.topic, partition: from.partition, offset: record.offset };
    metrics.add('throughline_worker_unreadable_total', 1, { topic: from.topic });
    logger.warn('record is unreadable; copied to dead-letter', { ...place, why });
    this.#copying++;
    copy(log, from, record, why)
      .catch((error: unknown) => {
        logger.error('copy to dead-letter failed', { ...place, error: errorText(error) });
      })
      .finally(() => {
        this.#copying--;
        for (const wake of this.#waiting) wake();
        this.#waiting.clear();
      })
      .catch(() => undefined);
  }

  /** Resolves when not too many copies are under way, or `signal` fires. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#copying > MAX_COPYING && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          signal.removeEventListener('abort', finish);
          this.#waiting.delete(finish);
          resolve();
        };
        this.#waiting.add(finish);
        signal.addEventListener('abort', finish, { once: true });
      });
    }
  }
}
