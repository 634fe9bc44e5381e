/**
 * Why a message was not appended, by code. SPEC: PRD-CODES.
 *
 * Nothing was appended, and trying again as it is does not help:
 * - `INVALID_MESSAGE`: not a JSON-RPC notification; the message names the field.
 * - `INVALID_KEY`: the idempotency key is not 1 to 128 characters of visible ASCII.
 * - `TOO_LARGE`: larger than a record of the log may be.
 * - `SESSION_UNKNOWN`: no session id, or of another log, a former epoch, or a session that nobody knows (yet).
 * - `SESSION_ENDED`.
 * - `TOO_LATE`: the first try was more than {@link RETRY_WITHIN_MS} ago, or the log took it later than that: it is not said.
 * - `CLOSED`.
 *
 * Nothing was appended, try again: `BUFFER_FULL`, `UNAVAILABLE`.
 *
 * - `UNKNOWN_OUTCOME`: it may be appended or not. Try again with the same key and the same `firstTriedMs`: it is said once.
 */
export type ProducerErrorCode =
  | 'INVALID_MESSAGE'
  | 'INVALID_KEY'
  | 'TOO_LARGE'
  | 'SESSION_UNKNOWN'
  | 'SESSION_ENDED'
  | 'TOO_LATE'
  | 'CLOSED'
  | 'BUFFER_FULL'
  | 'UNAVAILABLE'
  | 'UNKNOWN_OUTCOME';

export class ProducerError extends Error {
  override readonly name = 'ProducerError';
  readonly code: ProducerErrorCode;
  constructor(code: ProducerErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function hasProducerCode(error: unknown, code: ProducerErrorCode): error is ProducerError {
  return error instanceof ProducerError && error.code === code;
}
