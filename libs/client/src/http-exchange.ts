/** One HTTP request to the server, as far as the head of its answer. SPEC: CLIENT-HTTP, CLIENT-AUTH, CLIENT-UNSENT. */
import { HTTP_HEADER } from '@throughline/protocol';
import { TransportError } from './client-errors.ts';
import { isUnauthorized } from './judge-answer.ts';
import type { AnswerHead } from './judge-answer.ts';
import type { Settings } from './options.ts';
import { readFailure } from './read-failure.ts';
import { redirectTarget } from './redirect-target.ts';
import { untilAborted, within } from './wait.ts';

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly body?: string;
  readonly sessionId: string | null;
  readonly protocolVersion: string | null;
  readonly lastEventId?: string | null;
  /** Of this message alone. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Rejects with `UNREACHABLE` if no head comes in time, with `CREDENTIALS` if the server refused them and new ones could
 * not be asked for. The body of the answer lives until it is read or cancelled.
 */
export async function exchange(settings: Settings, request: ExchangeRequest): Promise<Response> {
  const { answer, sent } = await send(settings, request);
  const { onUnauthorized } = settings.user;
  if (!isUnauthorized(answer) || onUnauthorized === undefined) return answer;
  let isRenewed: boolean;
  try {
    isRenewed = await untilAborted(onUnauthorized.call(settings.user, answer, sent), request.signal);
  } catch (cause) {
    discard(answer);
    throw new TransportError('CREDENTIALS', 'The server refused the credentials, and new ones could not be had', {
      cause,
    });
  }
  if (!isRenewed) return answer;
  discard(answer);
  return (await send(settings, request)).answer;
}

interface Sent {
  readonly answer: Response;
  /** The headers that it answers. */
  readonly sent: Headers;
}

async function send(settings: Settings, request: ExchangeRequest): Promise<Sent> {
  const { timeoutMs, signal } = request;
  const controller = new AbortController();
  // User and password of a URL are not of its origin.
  const server = `The server at ${settings.url.origin}`;
  let wasUnsent = true;
  const onSend = (): void => {
    wasUnsent = false;
  };
  const late = (): TransportError =>
    new TransportError('UNREACHABLE', `${server} did not answer within ${timeoutMs} ms`, { wasUnsent });
  const asked = ask(settings, request, controller.signal, onSend);
  try {
    return await within(asked, timeoutMs, late, signal);
  } catch (cause) {
    controller.abort();
    asked.then(
      ({ answer }) => {
        discard(answer);
      },
      () => undefined,
    );
    if (cause instanceof TransportError) throw cause;
    const failure = readFailure(cause);
    const { causeCode } = failure;
    const why = causeCode === undefined ? '' : `: ${causeCode}`;
    throw new TransportError('UNREACHABLE', `${server} cannot be reached${why}`, {
      cause,
      causeCode,
      wasUnsent: wasUnsent || failure.wasUnsent,
    });
  }
}

/** Redirects of one request that are followed. */
const MAX_REDIRECTS = 5;

async function ask(
  settings: Settings,
  request: ExchangeRequest,
  signal: AbortSignal,
  onSend: () => void,
): Promise<Sent> {
  const { method, body } = request;
  const headers = await makeHeaders(settings, request);
  // Only those are followed that keep session id and credentials where they are: `fetch` itself would follow others.
  const init: RequestInit = { method, headers, redirect: 'manual', signal, ...(body === undefined ? {} : { body }) };
  let url = settings.url;
  onSend();
  for (let followed = 0; ; followed++) {
    const answer = await settings.fetch(url, init);
    const next = followed < MAX_REDIRECTS ? redirectTarget(url, answer) : null;
    if (next === null) return { answer, sent: headers };
    discard(answer);
    url = next;
  }
}

async function makeHeaders({ user }: Settings, request: ExchangeRequest): Promise<Headers> {
  const given = typeof user.headers === 'function' ? await user.headers() : user.headers;
  const headers = new Headers(given);
  for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
  const { method, sessionId, protocolVersion, lastEventId } = request;
  headers.set('Accept', method === 'POST' ? 'application/json, text/event-stream' : 'text/event-stream');
  if (method === 'POST') headers.set('Content-Type', 'application/json');
  if (sessionId !== null) headers.set(HTTP_HEADER.sessionId, sessionId);
  if (protocolVersion !== null) headers.set(HTTP_HEADER.protocolVersion, protocolVersion);
  if (lastEventId != null) headers.set(HTTP_HEADER.lastEventId, lastEventId);
  return headers;
}

export function headOf(answer: Response): AnswerHead {
  const { status, headers } = answer;
  return {
    status,
    sessionId: headers.get(HTTP_HEADER.sessionId),
    epoch: headers.get(HTTP_HEADER.replayEpoch),
    contentType: headers.get('content-type'),
    isUnauthorized: isUnauthorized(answer),
  };
}

/** Gives the connection back. */
export function discard(answer: Response): void {
  answer.body?.cancel().catch(() => undefined);
}

/** `Retry-After` in milliseconds; a date is not worth a clock that may be wrong. */
function retryAfterMs(answer: Response): number | undefined {
  const text = answer.headers.get('retry-after') ?? '';
  return /^[0-9]{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

/** What a status that is no answer means on the way. */
export function statusError(answer: Response, more = ''): TransportError {
  const { status } = answer;
  const to = answer.headers.get('location');
  const redirected = status === 0 || (status >= 300 && status < 400);
  const why = redirected ? `; this redirect is not followed: use ${to ?? 'the URL it leads to'}` : more;
  return new TransportError('HTTP_STATUS', `The server answered ${status}${why}`, {
    status,
    retryAfterMs: retryAfterMs(answer),
  });
}
