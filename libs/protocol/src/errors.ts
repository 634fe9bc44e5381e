/**
 * Every error that crosses the wire, by code. `http`: the status when it is the answer to an HTTP request; `jsonRpc`:
 * the code in the JSON-RPC error object; `retry`: what the client should do. Branch on `data.code` (or, for refused
 * resumes, `data.reason`), never on text. SPEC: ERR-TABLE.
 */
import { MAX_EVENT_ID_LENGTH } from './event-id.ts';

export type RetryAdvice = 'never' | 'after-backoff' | 'reinitialize' | 'application';

interface ErrorRow {
  readonly http: number;
  readonly jsonRpc: number;
  readonly retry: RetryAdvice;
}

export const ERROR_TABLE = {
  // Answers to an HTTP request; nothing was appended.
  MALFORMED_JSON: { http: 400, jsonRpc: -32700, retry: 'never' },
  INVALID_REQUEST: { http: 400, jsonRpc: -32600, retry: 'never' },
  SESSION_REQUIRED: { http: 400, jsonRpc: -32000, retry: 'never' },
  SESSION_NOT_FOUND: { http: 404, jsonRpc: -32001, retry: 'reinitialize' },
  VERSION_UNSUPPORTED: { http: 400, jsonRpc: -32000, retry: 'never' },
  /** A request of the era without sessions (2026-07-28). */
  ERA_UNSUPPORTED: { http: 400, jsonRpc: -32022, retry: 'never' },
  UNAUTHORIZED: { http: 401, jsonRpc: -32000, retry: 'never' },
  /** RFC 6750: more is asked for than the token allows; another one may do. */
  INSUFFICIENT_SCOPE: { http: 403, jsonRpc: -32000, retry: 'never' },
  ORIGIN_REFUSED: { http: 403, jsonRpc: -32000, retry: 'never' },
  HOST_REFUSED: { http: 403, jsonRpc: -32000, retry: 'never' },
  PATH_NOT_FOUND: { http: 404, jsonRpc: -32000, retry: 'never' },
  METHOD_NOT_ALLOWED: { http: 405, jsonRpc: -32000, retry: 'never' },
  NOT_ACCEPTABLE: { http: 406, jsonRpc: -32000, retry: 'never' },
  BODY_TOO_LARGE: { http: 413, jsonRpc: -32000, retry: 'never' },
  UNSUPPORTED_MEDIA_TYPE: { http: 415, jsonRpc: -32000, retry: 'never' },
  /** Of one principal alone: others are served. */
  RATE_LIMITED: { http: 429, jsonRpc: -32000, retry: 'after-backoff' },
  AUTH_UNAVAILABLE: { http: 503, jsonRpc: -32000, retry: 'after-backoff' },
  NO_OWNER: { http: 503, jsonRpc: -32000, retry: 'after-backoff' },
  CAPACITY: { http: 503, jsonRpc: -32000, retry: 'after-backoff' },
  DRAINING: { http: 503, jsonRpc: -32000, retry: 'after-backoff' },
  LOG_UNAVAILABLE: { http: 503, jsonRpc: -32000, retry: 'after-backoff' },
  /** The append may or may not be in the log: the request may run. */
  APPEND_UNKNOWN: { http: 504, jsonRpc: -32000, retry: 'application' },
  INTERNAL: { http: 500, jsonRpc: -32603, retry: 'application' },
  // Refused resumes.
  CURSOR_MALFORMED: { http: 400, jsonRpc: -32000, retry: 'never' },
  CURSOR_FOREIGN: { http: 400, jsonRpc: -32000, retry: 'never' },
  EPOCH_MISMATCH: { http: 404, jsonRpc: -32000, retry: 'reinitialize' },
  GAP: { http: 404, jsonRpc: -32000, retry: 'reinitialize' },
  BEYOND_END: { http: 404, jsonRpc: -32000, retry: 'reinitialize' },
  DIVERGED: { http: 404, jsonRpc: -32000, retry: 'reinitialize' },
  SESSION_ENDED: { http: 404, jsonRpc: -32000, retry: 'reinitialize' },
  // In-band outcomes of a call.
  /** The worker that ran the call is gone; the call may have run. */
  OWNER_LOST: { http: 200, jsonRpc: -32000, retry: 'application' },
  RESULT_TOO_LARGE: { http: 200, jsonRpc: -32603, retry: 'never' },
  ID_REUSED: { http: 200, jsonRpc: -32600, retry: 'never' },
  SERVER_FAILED: { http: 200, jsonRpc: -32603, retry: 'application' },
  // What a hosted server hears of its client: its client hears none of it.
  CAPABILITY_UNDECLARED: { http: 200, jsonRpc: -32601, retry: 'never' },
  /** The client takes such requests, but not this use of them. */
  CAPABILITY_LIMITED: { http: 200, jsonRpc: -32602, retry: 'never' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** Why a resume is refused. SPEC: RES-*. */
export const RESUMPTION_REASONS = {
  'cursor-malformed': 'CURSOR_MALFORMED',
  'cursor-foreign': 'CURSOR_FOREIGN',
  'epoch-mismatch': 'EPOCH_MISMATCH',
  gap: 'GAP',
  'beyond-end': 'BEYOND_END',
  diverged: 'DIVERGED',
  'session-ended': 'SESSION_ENDED',
} as const satisfies Record<string, ErrorCode>;

export type ResumptionReason = keyof typeof RESUMPTION_REASONS;

export interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The JSON-RPC error object of a wire error. `data` always holds the table's `code` and `retry`. SPEC: ERR-DATA. */
export function wireError(
  code: ErrorCode,
  message: string,
  data: Readonly<Record<string, unknown>> = {},
): JsonRpcErrorObject {
  const row = ERROR_TABLE[code];
  return { code: row.jsonRpc, message, data: { ...data, code, retry: row.retry } };
}

export interface ResumptionRejected {
  readonly reason: ResumptionReason;
  /** What the client asked for: its cursor as it came; {@link resumptionError} cuts it. */
  readonly requested: string;
  /** What is held: first and next offset of the partition, and the epoch; absent where nothing was read. */
  readonly available?: { readonly epoch: string; readonly start?: number; readonly end?: number };
}

const REASON_TEXT: Record<ResumptionReason, string> = {
  'cursor-malformed': 'Last-Event-ID is not an event id of this server',
  'cursor-foreign': 'Last-Event-ID names another session or stream',
  'epoch-mismatch': 'Last-Event-ID belongs to a history that has ended',
  gap: 'events after Last-Event-ID are no longer held',
  'beyond-end': 'Last-Event-ID lies beyond the end of the log',
  diverged: 'the log holds another event at Last-Event-ID',
  'session-ended': 'the session has ended',
};

export function resumptionError(rejected: ResumptionRejected): JsonRpcErrorObject {
  const code = RESUMPTION_REASONS[rejected.reason];
  const ends = ERROR_TABLE[code].retry === 'reinitialize';
  return wireError(code, `Resumption rejected: ${REASON_TEXT[rejected.reason]}`, {
    type: 'ResumptionRejected',
    reason: rejected.reason,
    action: ends ? 'reinitialize' : 'correct-cursor',
    // Of the call that waited for what is not replayed: where the session lives on, it can still be asked for.
    ...(ends ? { mayHaveRun: true } : {}),
    requested: rejected.requested.slice(0, MAX_EVENT_ID_LENGTH),
    ...(rejected.available === undefined ? {} : { available: rejected.available }),
  });
}
