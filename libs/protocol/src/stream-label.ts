/**
 * Names of SSE streams. `r<N>` answers the request at offset N of `inbound`; `s<A>` is the standalone stream opened by
 * the attachment at offset A of `events`. SPEC: ID-STREAM.
 */
import { parseOffset } from './position.ts';
import type { Offset } from './position.ts';

export type StreamKind = 'request' | 'standalone';

export interface StreamLabel {
  readonly kind: StreamKind;
  readonly at: Offset;
}

export type JsonRpcId = string | number;

export function requestStream(at: Offset): StreamLabel {
  return { kind: 'request', at };
}

export function standaloneStream(at: Offset): StreamLabel {
  return { kind: 'standalone', at };
}

export function formatStreamLabel(stream: StreamLabel): string {
  return `${stream.kind === 'request' ? 'r' : 's'}${stream.at}`;
}

export function parseStreamLabel(text: string): StreamLabel | null {
  const letter = text.charAt(0);
  if (letter !== 'r' && letter !== 's') return null;
  const at = parseOffset(text.slice(1));
  return at === null ? null : { kind: letter === 'r' ? 'request' : 'standalone', at };
}

const SAFE_STRING = /^[A-Za-z0-9_-]{1,31}$/;
const SAFE_INTEGER = /^(?:0|-?[1-9][0-9]{0,15})$/;

/** The typed form of a JSON-RPC id in a cursor: an integer as it is, a short safe string behind `_`; others are left out. */
export function formatJsonRpcId(id: JsonRpcId | undefined): string | null {
  if (typeof id === 'number') return Number.isSafeInteger(id) && !Object.is(id, -0) ? String(id) : null;
  return id !== undefined && SAFE_STRING.test(id) ? `_${id}` : null;
}

export function parseJsonRpcId(text: string): JsonRpcId | null {
  if (text.startsWith('_')) {
    const id = text.slice(1);
    return SAFE_STRING.test(id) ? id : null;
  }
  if (!SAFE_INTEGER.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}
