/**
 * `fetch` for what a server names: bounded in time and size, and only over TLS. The MCP server chooses these URLs, so one
 * that is elsewhere must not make this machine look at itself. SPEC: CONNECT-LOGIN-SAFE.
 */
import { failureText } from '@throughline/log';
import { isLoopback } from '../is-loopback.ts';

/** The SDK passes on errors of this kind alone. */
class UnsafeUrlError extends TypeError {
  override readonly name = 'UnsafeUrlError';
}

/** No answer, or one that says to come later. */
export class OutOfReachError extends TypeError {
  override readonly name = 'OutOfReachError';
}

export interface CarefulOptions {
  /** The MCP server. */
  readonly serverUrl: URL;
  readonly allowHttp: boolean;
  readonly signal: AbortSignal;
}

export type CarefulFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const WITHIN_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

/** Rejects with {@link UnsafeUrlError} or {@link OutOfReachError}. */
export function makeCarefulFetch(options: CarefulOptions): CarefulFetch {
  return async (url, init = {}) => {
    const target = new URL(url);
    if (!isSafe(target, options))
      throw new UnsafeUrlError(`the server names ${target.origin}, which has no TLS or no business here`);
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(WITHIN_MS)]);
    let answer: Response;
    try {
      answer = await keep(await fetch(target, { ...init, signal }));
    } catch (cause) {
      if (cause instanceof UnsafeUrlError) throw cause;
      throw new OutOfReachError(`${target.origin} is out of reach: ${failureText(cause)}`, { cause });
    }
    if (answer.status === 429 || answer.status >= 500)
      throw new OutOfReachError(`${target.origin} answered ${answer.status}`);
    return answer;
  };
}

/** Whether this URL may be asked, or shown to a person. */
export function isSafe(
  target: URL,
  { serverUrl, allowHttp }: Pick<CarefulOptions, 'serverUrl' | 'allowHttp'>,
): boolean {
  if (target.username !== '' || target.password !== '') return false;
  const isHere = isLoopback(target.hostname);
  if (isHere && !isLoopback(serverUrl.hostname)) return false;
  return target.protocol === 'https:' || (target.protocol === 'http:' && (isHere || allowHttp));
}

/** With its body in memory. */
async function keep(answer: Response): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | null = answer.body;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new UnsafeUrlError('the authorization server answers with more than 1 MiB');
    chunks.push(chunk);
  }
  const { status, headers } = answer;
  return new Response(bytes === 0 ? null : Buffer.concat(chunks), { status, headers });
}
