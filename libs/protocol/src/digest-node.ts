/** Digests for Node: the platform's own implementations. Must equal `digest-portable.ts` byte for byte (a test compares them). */
import { createHmac, hash } from 'node:crypto';
import { crc32 as zlibCrc32 } from 'node:zlib';

/** As a plain `Uint8Array`: `slice` of a Buffer is a view, which would hold on to (and share) what it was cut from. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

export function sha256(data: Uint8Array): Uint8Array {
  return plain(hash('sha256', data, 'buffer'));
}

export function hmacSha256(secret: Uint8Array, data: Uint8Array): Uint8Array {
  return plain(createHmac('sha256', secret).update(data).digest());
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
