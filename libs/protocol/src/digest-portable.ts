/** Digests for browsers and edge runtimes: synchronous and without Node. Must equal `digest-node.ts` byte for byte. */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';

export function sha256(data: Uint8Array): Uint8Array {
  return nobleSha256(data);
}

export function hmacSha256(secret: Uint8Array, data: Uint8Array): Uint8Array {
  return hmac(nobleSha256, secret, data);
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

/** CRC-32 (IEEE 802.3) of `data`, continued from `seed` (0 to start). */
export function crc32(data: Uint8Array, seed: number): number {
  let crc = ~seed >>> 0;
  for (const byte of data) crc = ((CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)) >>> 0;
  return ~crc >>> 0;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export function toBase64Url(bytes: Uint8Array): string {
  let text = '';
  for (let index = 0; index < bytes.length; index += 3) {
    const group = ((bytes[index] ?? 0) << 16) | ((bytes[index + 1] ?? 0) << 8) | (bytes[index + 2] ?? 0);
    const characters = Math.min(3, bytes.length - index) + 1;
    for (let place = 0; place < characters; place++) text += ALPHABET[(group >>> (18 - 6 * place)) & 63] ?? '';
  }
  return text;
}

/** Inverse of {@link toBase64Url}; `null` for text that it would not have produced. */
export function fromBase64Url(text: string): Uint8Array | null {
  if (text.length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let group = 0;
  let bits = 0;
  let length = 0;
  for (const character of text) {
    const value = ALPHABET.indexOf(character);
    if (value < 0) return null;
    group = ((group << 6) | value) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[length++] = (group >>> bits) & 0xff;
    }
  }
  return toBase64Url(bytes) === text ? bytes : null;
}
