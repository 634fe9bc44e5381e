/** Digests for Node: the platform's own implementations. Must equal `digest-portable.ts` byte for byte (a test compares them). */
import { hash } from 'node:crypto';
import { crc32 as zlibCrc32 } from 'node:zlib';

/** As a plain `Uint8Array`: `slice` of a Buffer is a view, which would hold on to (and share) what it was cut from. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

export function sha256(data: Uint8Array): Uint8Array {
  return plain(hash('sha256', data, 'buffer'));
}

const BLOCK_BYTES = 64;

/** By RFC 2104 over one-shot digests: `createHmac` makes a key object each time, which costs ten times the digests. */
export function hmacSha256(secret: Uint8Array, data: Uint8Array): Uint8Array {
  const key = secret.length > BLOCK_BYTES ? sha256(secret) : secret;
  return padded(key, 0x5c, padded(key, 0x36, data));
}

function padded(key: Uint8Array, pad: number, data: Uint8Array): Uint8Array {
  const input = new Uint8Array(BLOCK_BYTES + data.length).fill(pad, 0, BLOCK_BYTES);
  for (const [index, byte] of key.entries()) input[index] = byte ^ pad;
  input.set(data, BLOCK_BYTES);
  return sha256(input);
}

/** CRC-32 (IEEE 802.3) of `data`, continued from `seed` (0 to start). */
export function crc32(data: Uint8Array, seed: number): number {
  return zlibCrc32(data, seed);
}

export function toBase64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}

/** Inverse of {@link toBase64Url}; `null` for text that it would not have produced. */
export function fromBase64Url(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  // A copy: short Buffers are cut from a pool shared with everything else in the process.
  return bytes.toString('base64url') === text ? new Uint8Array(bytes) : null;
}
