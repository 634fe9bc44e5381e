/** The two families of errors of a client. Branch on `code` and `reason`, never on text. SPEC: CLIENT-ERRORS. */
import { errorResponse } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcResponse } from '@throughline/protocol';
import type { RejectionReason } from './verdict.ts';

/**
 * What a `TransportError` is about.
 *
 * - `UNREACHABLE`: no answer came: no connection, or it broke.
 * - `SILENT`: an open connection brought nothing, not even a keepalive, for longer than it may.
 * - `HTTP_STATUS`: the server, or a proxy before it, answered with a status that is no answer to the message.
 * - `CREDENTIALS`: the server refused the credentials, and new ones could not be had; the request was not taken.
 * - `NOT_MCP`: the answer is neither JSON nor an event stream, or cannot be read.
 * - `NO_ANSWER`: the stream of a call ended, and its answer had not come.
 * - `CLOSED`: the transport was closed or has no session.
 * - `STORE`: the checkpoint could not be kept or read.
 */
export type TransportCode =
  'UNREACHABLE' | 'SILENT' | 'HTTP_STATUS' | 'CREDENTIALS' | 'NOT_MCP' | 'NO_ANSWER' | 'CLOSED' | 'STORE';

/** Trouble on the way. It is met by trying again, until the deadline; nothing is concluded about the session. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly code: TransportCode;
  /** Of `HTTP_STATUS`. */
  readonly status: number | undefined;
  /** Milliseconds that the server asks to wait, by `Retry-After`. */
  readonly retryAfterMs: number | undefined;
  /** Of `UNREACHABLE`: what the platform says it was, as `ECONNREFUSED`. Browsers say nothing. */
  readonly causeCode: string | undefined;
  /** Of `UNREACHABLE`: it is certain that nothing of the request has left this side. */
  readonly wasUnsent: boolean;
  /** Of what is tried again, when it is told to `onerror`. */
  retry: Retry | undefined;

  constructor(code: TransportCode, message: string, more: TransportErrorFields = {}) {
    super(message, 'cause' in more ? { cause: more.cause } : {});
    this.code = code;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
    this.causeCode = more.causeCode;
    this.wasUnsent = more.wasUnsent === true;
  }
}

interface Retry {
  /** Attempts that have failed since the server was last heard. */
  readonly attempt: number;
  /** Milliseconds until the next one. */
  readonly inMs: number;
}

interface TransportErrorFields {
  readonly status?: number;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
  readonly causeCode?: string | undefined;
  readonly wasUnsent?: boolean;
}

/**
 * A stream that cannot be taken for the continuation of what was processed, or a session that is gone. The same cursor
 * is never tried again.
 */
export class ResumptionRejected extends Error {
  override readonly name = 'ResumptionRejected';
  readonly code = 'RESUMPTION_REJECTED';
  readonly reason: RejectionReason;
  readonly action = 'reinitialize';
  /** The session that is over. */
  readonly sessionId: string | null;
  /** Where this client stopped. */
  readonly lastEventId: string | null;

  constructor(
    reason: RejectionReason,
    detail: string,
    { sessionId, lastEventId }: { readonly sessionId: string | null; readonly lastEventId: string | null },
  ) {
    super(`Resumption rejected (${reason}): ${detail}`);
    this.reason = reason;
    this.sessionId = sessionId;
    this.lastEventId = lastEventId;
  }
}

export type ClientError = TransportError | ResumptionRejected;

const JSON_RPC_CODE = -32000;

/** The answer to a call that has failed on this side: `data` says with what, and whether the call may have run. */
export function failedCall(id: JsonRpcId, error: ClientError, mayHaveRun: boolean): JsonRpcResponse {
  return errorResponse(id, {
    code: JSON_RPC_CODE,
    message: error.message,
    data: {
      type: error.name,
      code: error.code,
      ...(error instanceof ResumptionRejected
        ? { reason: error.reason, action: error.action }
        : {
            ...(error.status === undefined ? {} : { status: error.status }),
            ...(error.causeCode === undefined ? {} : { cause: error.causeCode }),
          }),
      mayHaveRun,
    },
  });
}
