/** Number and chain of the messages of one stream, derived by the reader from log order alone. SPEC: RES-SEQ. */
import type { StreamLabel } from '@throughline/protocol';
import { extendChain, startChain } from '@throughline/protocol';

export interface Numbering {
  readonly seq: number;
  readonly chain: Uint8Array;
}

export function startNumbering(sessionId: string, stream: StreamLabel): Numbering {
  return { seq: 0, chain: startChain(sessionId, stream) };
}

export function nextNumbering(numbering: Numbering, payload: Uint8Array): Numbering {
  return { seq: numbering.seq + 1, chain: extendChain(numbering.chain, payload) };
}
