/** What SQLite says, in the words of the port. Branches on result codes only. */
import { errorText } from '../errors.ts';
import type { Fault } from './messages.ts';

/** Primary result codes. */
export const SQLITE = {
  busy: 5,
  locked: 6,
  readonly: 8,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
} as const;

/** The primary result code; `null` for what is no error of SQLite. */
export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null;
  return error.errcode & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE.busy || code === SQLITE.locked;
}

/** For errors of appends before COMMIT: nothing was written. */
export function refusedFault(error: unknown, hasReachedCap: boolean): Fault {
  if (sqliteCode(error) !== SQLITE.full)
    return {
      code: 'APPEND_REFUSED',
      message: `the log could not be written: ${errorText(error)}`,
      details: { reason: 'other' },
    };
  return hasReachedCap
    ? { code: 'APPEND_REFUSED', message: 'the log has reached its size cap', details: { reason: 'size-cap' } }
    : { code: 'APPEND_REFUSED', message: 'the disk is full', details: { reason: 'disk-full' } };
}

export function unavailableFault(error: unknown): Fault {
  return { code: 'LOG_UNAVAILABLE', message: `the log does not answer: ${errorText(error)}`, details: {} };
}
