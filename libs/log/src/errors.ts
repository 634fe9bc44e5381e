import type { Offset } from '@throughline/protocol';

/**
 * - `APPEND_REFUSED`: nothing of this append is in the log, nor will be (disk full, size cap, record too large, closed before it was sent).
 * - `APPEND_UNKNOWN`: it may or may not be in the log, in whole; never append it again blindly.
 * - `OFFSET_OUT_OF_RANGE`: the position is below the start (evicted) or above the end; `details.start`, `details.end`.
 * - `LOG_UNAVAILABLE`: the log does not answer now; the operation had no effect and may be tried again.
 * - `NOT_AUTHENTICATED`: the log does not accept the credentials of this process; `message` names what to check. Nothing was done.
 * - `NOT_AUTHORIZED`: the log does not let this process do it; `message` and `details.missing` name what to allow. Nothing was done.
 * - `LOG_INCOMPATIBLE`: the log was written by a newer version, is no log or is set up otherwise; `message` or `details.cure` names the fix.
 * - `ABORTED`: the caller's signal fired.
 * - `CLOSED`: the log was closed by this process.
 */
export type LogErrorCode =
  | 'APPEND_REFUSED'
  | 'APPEND_UNKNOWN'
  | 'OFFSET_OUT_OF_RANGE'
  | 'LOG_UNAVAILABLE'
  | 'NOT_AUTHENTICATED'
  | 'NOT_AUTHORIZED'
  | 'LOG_INCOMPATIBLE'
  | 'ABORTED'
  | 'CLOSED';

export interface LogErrorDetails {
  readonly start?: Offset;
  readonly end?: Offset;
  /** On `APPEND_REFUSED`: why, for programs. */
  readonly reason?:
    'too-large' | 'disk-full' | 'size-cap' | 'closed' | 'not-authenticated' | 'not-authorized' | 'other';
  /** Where rights are missing: each as `<operation> on <resource> <name>`. */
  readonly missing?: readonly string[];
  /** What puts it right. `apply-topics`: topics are missing or set otherwise than `applyTopics` sets them. */
  readonly cure?: 'apply-topics';
}

export class LogError extends Error {
  override readonly name = 'LogError';
  readonly code: LogErrorCode;
  readonly details: LogErrorDetails;
  constructor(code: LogErrorCode, message: string, details: LogErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }
}

export function hasLogCode(error: unknown, code: LogErrorCode): error is LogError {
  return error instanceof LogError && error.code === code;
}

/** What a log line or a message says of an error, whatever was thrown. For people: nothing branches on it. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The innermost words of a failed fetch, which alone says "fetch failed" and not why. */
export function failureText(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  if (!(inner instanceof Error)) return String(inner);
  const code = (inner as NodeJS.ErrnoException).code;
  if (inner.message !== '') return inner.message;
  return code ?? inner.name;
}

/** The same with its stack, for what is a fault of this program. */
export function errorStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
