/** A session that a former process left behind, looked at before anyone goes on in it. SPEC: CLIENT-KEPT. */
import { discard, exchange } from './http-exchange.ts';
import { isTemporary } from './judge-answer.ts';
import { readOptions } from './options.ts';
import type { ResumableTransportOptions } from './options.ts';
import { parseSession } from './saved-session.ts';

export interface KeptSession {
  readonly sessionId: string;
  /**
   * Asks the server by a `ping`. `gone`: the server knows the session no more; `unknown`: it was out of reach, or said
   * nothing that can be relied on. Never rejects.
   */
  probe(signal: AbortSignal): Promise<'alive' | 'gone' | 'unknown'>;
  /** Ends it at the server (DELETE), whether it is still there or not. The place is not touched. Never rejects. */
  end(signal: AbortSignal): Promise<void>;
}

/**
 * The session whose place the store keeps for this URL; `null`: none, or none that can be read. Takes the options of the
 * transport that would go on in it. Rejects with what the store throws.
 */
export async function readKeptSession(
  url: string | URL,
  options: ResumableTransportOptions,
): Promise<KeptSession | null> {
  const settings = readOptions(url, options);
  const text = await options.store?.load(settings.storeKey);
  if (text === undefined) return null;
  const saved = parse(text);
  if (saved === null || saved.sessionId === null) return null;
  const { sessionId, protocolVersion } = saved;
  const ask = async (method: 'POST' | 'DELETE', signal: AbortSignal, body?: string): Promise<Response> => {
    const more = body === undefined ? {} : { body };
    const timeoutMs = settings.connectTimeoutMs;
    const answer = await exchange(settings, { method, sessionId, protocolVersion, timeoutMs, signal, ...more });
    discard(answer);
    return answer;
  };
  return {
    sessionId,
    async probe(signal) {
      // Its id is none that an application uses.
      const ping = JSON.stringify({ jsonrpc: '2.0', id: `probe-${crypto.randomUUID()}`, method: 'ping' });
      try {
        const { ok, status } = await ask('POST', signal, ping);
        if (ok) return 'alive';
        return isTemporary(status) || status === 401 || status === 403 ? 'unknown' : 'gone';
      } catch {
        return 'unknown';
      }
    },
    async end(signal) {
      await ask('DELETE', signal).catch(() => undefined);
    },
  };
}

function parse(text: string): ReturnType<typeof parseSession> | null {
  try {
    return parseSession(text);
  } catch {
    // Whoever goes on from it tells.
    return null;
  }
}
