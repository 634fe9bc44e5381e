/** HTTP to one upstream session: headers, bounded bodies, and why a call failed. */
import { nextChunk } from './next-chunk.ts';
import type { Silence } from './next-chunk.ts';
import type { SseCursor } from './sse-reader.ts';

export interface UpstreamTarget {
  readonly url: string;
  /** Configured headers only: nothing of the client's request is ever passed on. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * User and password of a URL become the `Authorization` that they stand for: `fetch` takes none in a URL, and says the
 * whole of it when it refuses. A configured header counts more.
 */
export function targetOf(url: string, headers: Readonly<Record<string, string>>): UpstreamTarget {
  const parsed = new URL(url);
  if (parsed.username === '' && parsed.password === '') return { url, headers };
  const login = `${decodeURIComponent(parsed.username)}:${decodeURIComponent(parsed.password)}`;
  parsed.username = '';
  parsed.password = '';
  const isSet = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  const own = isSet ? {} : { authorization: `Basic ${Buffer.from(login, 'utf8').toString('base64')}` };
  return { url: parsed.href, headers: { ...own, ...headers } };
}

/** What the upstream named in its answer to `initialize`. */
export interface UpstreamState {
  sessionId: string | undefined;
  protocolVersion: string | undefined;
}

export interface UpstreamHttp {
  /** Posts one JSON text. Rejects as `fetch` does. */
  post(body: string, signal: AbortSignal): Promise<Response>;
  /** Opens the standalone stream, or resumes the stream of the cursor. Rejects as `fetch` does. */
  get(cursor: SseCursor, signal: AbortSignal): Promise<Response>;
  /** Ends the session. Rejects as `fetch` does. */
  delete(signal: AbortSignal): Promise<Response>;
}

export function createUpstreamHttp(target: UpstreamTarget, state: UpstreamState): UpstreamHttp {
  const headers = (own: Readonly<Record<string, string>>): Headers => {
    const all = new Headers(target.headers);
    for (const [name, value] of Object.entries(own)) all.set(name, value);
    all.delete('last-event-id');
    if (own['last-event-id'] !== undefined) all.set('last-event-id', own['last-event-id']);
    if (state.sessionId !== undefined) all.set('mcp-session-id', state.sessionId);
    if (state.protocolVersion !== undefined) all.set('mcp-protocol-version', state.protocolVersion);
    return all;
  };
  // Redirects are not followed: configured credentials go to the configured place only.
  const send = (method: string, own: Readonly<Record<string, string>>, signal: AbortSignal, body?: string) =>
    fetch(target.url, {
      method,
      headers: headers(own),
      redirect: 'manual',
      signal,
      ...(body === undefined ? {} : { body }),
    });
  return {
    post: (body, signal) =>
      send('POST', { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, signal, body),
    get: (cursor, signal) =>
      send(
        'GET',
        {
          accept: 'text/event-stream',
          ...(cursor.lastEventId === undefined ? {} : { 'last-event-id': cursor.lastEventId }),
        },
        signal,
      ),
    delete: (signal) => send('DELETE', {}, signal),
  };
}

export function mediaType(response: Response): string {
  return (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Frees the connection of an answer whose body is not wanted. */
export function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

/** The body as text, or undefined if it is longer than `maxBytes`. Rejects if the connection breaks or falls silent. */
export async function readText(response: Response, maxBytes: number, silence: Silence): Promise<string | undefined> {
  if (response.body === null) return '';
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await nextChunk(reader, silence);
      if (done || value === undefined) return Buffer.concat(chunks).toString('utf8');
      bytes += value.length;
      if (bytes > maxBytes) return undefined;
      chunks.push(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Codes of failures before anything of a request can have been sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether the upstream may have seen the request whose fetch failed. */
export function mayHaveArrived(error: unknown): boolean {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  return !(inner instanceof Error && NOT_SENT.has((inner as NodeJS.ErrnoException).code));
}

/** What a status says to the person who configured the upstream. */
export function statusText(response: Response): string {
  const { status } = response;
  if (status >= 300 && status < 400) {
    const location = withoutSecrets(response.headers.get('location') ?? 'an unknown place');
    return `status ${String(status)}: it redirects to ${location}; redirects are not followed, configure that URL`;
  }
  if (status === 401 || status === 403) {
    return `status ${String(status)}: it refuses the configured credentials (headers)`;
  }
  return `status ${String(status)}`;
}

/** Queries and logins of URLs may hold keys. */
function withoutSecrets(location: string): string {
  return location.replace(/[?#].*$/s, '?…').replace(/\/\/[^/@]*@/, '//');
}
