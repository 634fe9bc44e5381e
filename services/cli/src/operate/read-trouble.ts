/** What a reader of the log that tries again by itself says while a command waits for it. */
import { LogError } from '@throughline/log';
import type { LogErrorCode } from '@throughline/log';

export interface ReadTrouble {
  /** Fires at the first error that another try would not change: the command need not wait for its deadline. */
  readonly signal: AbortSignal;
  onError(error: unknown): void;
  /** Of the log, if it said something; else what the wait ended with. */
  cause(error: unknown): unknown;
}

const LASTING: ReadonlySet<LogErrorCode> = new Set(['NOT_AUTHORIZED', 'NOT_AUTHENTICATED', 'LOG_INCOMPATIBLE']);

export function watchTrouble(): ReadTrouble {
  const lasting = new AbortController();
  let last: LogError | null = null;
  return {
    signal: lasting.signal,
    onError(error) {
      if (!(error instanceof LogError) || lasting.signal.aborted) return;
      last = error;
      if (LASTING.has(error.code)) lasting.abort();
    },
    cause: (error) => last ?? error,
  };
}
