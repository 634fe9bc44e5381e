/**
 * SHA-256 over the id, a colon and the payload, in hex. Synchronous, since the next event may not be judged before this
 * one is: Web Crypto would put a promise between any two events. SPEC: CLIENT-DIGEST.
 */
import { encodeText, sha256 } from '@throughline/protocol';

export function eventDigest(id: string, payload: string): string {
  let hex = '';
  for (const byte of sha256(encodeText(`${id}:${payload}`))) hex += byte.toString(16).padStart(2, '0');
  return hex;
}
