import { createHash, createHmac } from 'node:crypto';
import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as node from './digest-node.ts';
import * as portable from './digest-portable.ts';

const implementations = [
  ['node', node],
  ['portable', portable],
] as const;
const data = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.uint8Array({ minLength: 1000, maxLength: 9000, size: 'max' }),
);
/** Also bytes that are a window into something larger. */
const windowed = fc.tuple(data, fc.nat(10)).map(([bytes, skip]) => bytes.subarray(Math.min(skip, bytes.length)));
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.stringMatching(/^[A-Za-z0-9_-]{0,30}$/),
  fc.stringMatching(/^[A-Za-z0-9_+/=-]{0,10}$/),
);

describe('digests', () => {
  it.each(implementations)('[ID-DIGEST] %s: known answers', (_, digest) => {
    const ascii = (value: string): Uint8Array => new TextEncoder().encode(value);
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
    expect(hex(digest.sha256(ascii('abc')))).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    // RFC 4231, test case 2.
    expect(hex(digest.hmacSha256(ascii('Jefe'), ascii('what do ya want for nothing?')))).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    expect(digest.crc32(ascii('123456789'), 0)).toBe(0xcbf43926);
    expect(digest.crc32(ascii('6789'), digest.crc32(ascii('12345'), 0))).toBe(0xcbf43926);
    expect(digest.crc32(new Uint8Array(0), 123)).toBe(123);
    expect(digest.toBase64Url(Uint8Array.of(0xfb, 0xff, 0xfe, 0x00))).toBe('-__-AA');
    expect(digest.fromBase64Url('-__-AA')).toEqual(Uint8Array.of(0xfb, 0xff, 0xfe, 0x00));
  });

  it('[ID-DIGEST] SHA-256, HMAC and CRC-32 are the same bytes on Node, elsewhere, and in node:crypto', () => {
    fc.assert(
      fc.property(windowed, fc.uint8Array({ maxLength: 150 }), fc.nat(0xffffffff), (bytes, secret, seed) => {
        const hash = Uint8Array.from(createHash('sha256').update(bytes).digest());
        const mac = Uint8Array.from(createHmac('sha256', secret).update(bytes).digest());
        for (const [, digest] of implementations) {
          expect(digest.sha256(bytes)).toStrictEqual(hash);
          expect(digest.hmacSha256(secret, bytes)).toStrictEqual(mac);
          expect(digest.crc32(bytes, seed)).toBe(zlibCrc32(bytes, seed));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('[ID-DIGEST] base64url is written the same and read back', () => {
    fc.assert(
      fc.property(windowed, (bytes) => {
        const written = node.toBase64Url(bytes);
        expect(portable.toBase64Url(bytes)).toBe(written);
        for (const [, digest] of implementations)
          expect(digest.fromBase64Url(written)).toStrictEqual(Uint8Array.from(bytes));
      }),
      { numRuns: 300 },
    );
  });

  it('[ID-DIGEST] both read the same texts as base64url, and only those that they write', () => {
    fc.assert(
      fc.property(text, (candidate) => {
        const bytes = node.fromBase64Url(candidate);
        expect(portable.fromBase64Url(candidate)).toStrictEqual(bytes);
        if (bytes !== null) expect(node.toBase64Url(bytes)).toBe(candidate);
      }),
      { numRuns: 3000 },
    );
  });

  it.each(['A', 'AB', 'AAB', 'AA==', 'AAA=', 'A+AA', 'A/AA', ' AA', 'AA\n', 'AAAAA', 'é', '😀😀', 'AA\0A'])(
    '[ID-DIGEST] %j is refused as base64url by both',
    (candidate) => {
      for (const [, digest] of implementations) expect(digest.fromBase64Url(candidate)).toBeNull();
    },
  );
});
