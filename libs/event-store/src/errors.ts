/** What a store says when it does not do what it was asked, by code. SPEC: EVS-CODES. */
import { ERROR_TABLE, errorResponse, RESUMPTION_REASONS, resumptionError } from '@throughline/protocol';
import type { JsonRpcResponse, ResumptionReason, ResumptionRejected } from '@throughline/protocol';

/**
 * - `SHARED_LOG`: gateways and workers use this log. Give the store a log of its own: another file, another prefix.
 * - `SESSION_ENDED`: the session has ended, or belongs to a history that is over; nothing is stored in it.
 * - `TOO_MANY_SESSIONS`, `TOO_MUCH_WAITING`: a limit of the store; nothing was stored. Try again later.
 * - `TOO_LARGE`: the message is larger than a record of the log may be; it was not stored.
 * - `REPLAY_TOO_LARGE`: more lies behind the id than may be held in memory for one answer; nothing was sent.
 * - `CONTENDED`: another process writes the same stream, again and again; the message was not stored.
 * - `RESTORE_REFUSED`: the fresh transport did not take `initialize`, or nobody remembered it.
 */
export type EventStoreErrorCode =
  | 'SHARED_LOG'
  | 'SESSION_ENDED'
  | 'TOO_MANY_SESSIONS'
  | 'TOO_MUCH_WAITING'
  | 'TOO_LARGE'
  | 'REPLAY_TOO_LARGE'
  | 'CONTENDED'
  | 'RESTORE_REFUSED';

export class EventStoreError extends Error {
  override readonly name = 'EventStoreError';
  readonly code: EventStoreErrorCode;
  constructor(code: EventStoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function hasEventStoreCode(error: unknown, code: EventStoreErrorCode): error is EventStoreError {
  return error instanceof EventStoreError && error.code === code;
}

/** An event id that cannot be resumed at, with the reason: the family of `ResumptionRejected`, as gateways tell it. */
export class ResumeRefused extends Error {
  override readonly name = 'ResumeRefused';
  readonly code: (typeof RESUMPTION_REASONS)[ResumptionReason];
  readonly reason: ResumptionReason;
  /** The status for an answer of your own: 400 or 404. */
  readonly httpStatus: number;
  /** The body for an answer of your own. */
  readonly body: JsonRpcResponse;

  constructor(rejected: ResumptionRejected) {
    const error = resumptionError(rejected);
    super(error.message);
    this.code = RESUMPTION_REASONS[rejected.reason];
    this.reason = rejected.reason;
    this.httpStatus = ERROR_TABLE[this.code].http;
    this.body = errorResponse(null, error);
  }
}
