/** Refusals of HTTP requests: a JSON-RPC error without a stream. One place derives status and headers from the code. */
import { ERROR_TABLE, errorResponse, wireError } from '@throughline/protocol';
import type { ErrorCode, JsonRpcErrorObject, JsonRpcId } from '@throughline/protocol';
import type { ResponseSink } from './exchange.ts';

export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  /** The request that it answers, if one is known. */
  readonly id?: JsonRpcId;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown inside the core to refuse the request at hand. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export function refuse(code: ErrorCode, message: string, extra: Omit<Refusal, 'code' | 'message'> = {}): never {
  throw new RefusedError({ code, message, ...extra });
}

const RETRY_AFTER_SECONDS = '1';

export function answerRefusal(sink: ResponseSink, refusal: Refusal): number {
  return answerError(
    sink,
    ERROR_TABLE[refusal.code].http,
    wireError(refusal.code, refusal.message, refusal.data),
    refusal.id ?? null,
    refusal.headers,
  );
}

export function answerError(
  sink: ResponseSink,
  status: number,
  error: JsonRpcErrorObject,
  id: JsonRpcId | null,
  headers: Readonly<Record<string, string>> = {},
): number {
  const retry = status === 503 || status === 429 ? { 'Retry-After': RETRY_AFTER_SECONDS } : {};
  sink.head(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...retry, ...headers });
  sink.write(JSON.stringify(errorResponse(id, error)));
  sink.end();
  return status;
}

export function answerEmpty(
  sink: ResponseSink,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): number {
  sink.head(status, { 'Cache-Control': 'no-store', ...headers });
  sink.end();
  return status;
}
