/** What the parts of one upstream session share. */
import { deadline, failureText } from '@throughline/log';
import type { JsonRpcMessage } from '@throughline/protocol';
import type { HostCallbacks } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import type { ReconnectPolicy } from './reconnect-delay.ts';
import { reconnectDelay } from './reconnect-delay.ts';
import type { SseCursor } from './sse-reader.ts';
import { discard, mediaType, statusText } from './upstream-http.ts';
import type { UpstreamHttp, UpstreamState } from './upstream-http.ts';

export interface UpstreamLimits {
  /** Milliseconds for the answer to `initialize`. Default 30000. */
  readonly initializeMs: number;
  /** Milliseconds for the answer to a notification or response, over all attempts, and for the headers of a stream. Default 30000. */
  readonly answerMs: number;
  /** Milliseconds that the answer to a call, or a stream, may be silent, also before its head. Default 300000. */
  readonly silenceMs: number;
  /** Milliseconds for the DELETE at the end. Default 2000. */
  readonly deleteMs: number;
  /** Milliseconds that a cancelled call may still send. Default 1000. */
  readonly cancelGraceMs: number;
  /** Milliseconds that a stream may stay open after its response. Default 1000. */
  readonly lingerMs: number;
  /** Attempts in a row to resume a call's stream without any event. Default 5. */
  readonly maxResumes: number;
  /** Milliseconds that a call's stream is polled without a new event id. Default 300000. */
  readonly maxPollMs: number;
  /** Times between attempts. Default 500 ms, doubled up to 30 s. */
  readonly reconnect: ReconnectPolicy;
  /** Characters or bytes of one message at most. Default 16 Mi. */
  readonly maxMessageSize: number;
  /** Messages that wait for their turn at most. Default 1024. */
  readonly maxWaiting: number;
}

export interface UpstreamContext extends HostDeps {
  readonly http: UpstreamHttp;
  readonly state: UpstreamState;
  readonly callbacks: HostCallbacks;
  readonly limits: UpstreamLimits;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
  /** Passes one message of the upstream on. `related`: the call on whose stream it came. */
  forward(message: JsonRpcMessage, related?: string | number): Promise<void>;
  /** The upstream does not know the session any more. */
  lose(reason: string): void;
}

export const LOST_REASON = 'upstream session lost: the upstream MCP server does not know the session any more (404)';

export function isSessionLost(context: UpstreamContext, response: Response): boolean {
  return response.status === 404 && context.state.sessionId !== undefined;
}

/** The upstream did not answer in time: it may have taken the message in. */
export class AnswerTimeout extends Error {
  override readonly name = 'AnswerTimeout';
}

/** Runs one HTTP exchange to its headers within `ms`; the body stays readable after that until `signal` aborts. */
export async function fetchHeaders(
  context: UpstreamContext,
  ms: number,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const limit = deadline(context.clock, ms);
  try {
    return await run(AbortSignal.any([signal, limit.signal]));
  } catch (error) {
    if (limit.expired()) throw new AnswerTimeout(`no answer in ${String(ms)} ms`, { cause: error });
    throw error;
  } finally {
    limit.dispose();
  }
}

export type OpenedStream =
  | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> }
  /** May work later. */
  | { readonly kind: 'retry'; readonly why: string }
  /** Will not work. */
  | { readonly kind: 'refused'; readonly why: string; readonly status: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'aborted' };

const RETRYABLE = new Set([408, 409, 425, 429]);

/** A GET for the standalone stream, or for the stream of the cursor. Never rejects. */
export async function openStream(
  context: UpstreamContext,
  cursor: SseCursor,
  signal: AbortSignal,
): Promise<OpenedStream> {
  let response: Response;
  try {
    response = await fetchHeaders(context, context.limits.answerMs, signal, (inner) => context.http.get(cursor, inner));
  } catch (error) {
    return signal.aborted ? { kind: 'aborted' } : { kind: 'retry', why: failureText(error) };
  }
  if (response.status === 200 && mediaType(response) === 'text/event-stream' && response.body !== null) {
    return { kind: 'stream', body: response.body as ReadableStream<Uint8Array> };
  }
  discard(response);
  if (isSessionLost(context, response)) return { kind: 'lost' };
  const why = statusText(response);
  if (RETRYABLE.has(response.status) || response.status >= 500) return { kind: 'retry', why };
  return { kind: 'refused', why, status: response.status };
}

export function delayBefore(context: UpstreamContext, cursor: SseCursor, failures: number): number {
  return reconnectDelay(context.limits.reconnect, cursor.retryMs, failures, context.random?.unit() ?? 0);
}
