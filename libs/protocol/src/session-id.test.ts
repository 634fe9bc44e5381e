import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_PARTITION } from './position.ts';
import { makeSessionKey, MAX_SESSION_ID_LENGTH, parseSessionId, signSessionId, verifySessionId } from './session-id.ts';
import type { SessionId } from './session-id.ts';

// Computed with Python's hmac and json, not with this package.
const LITERAL = 'k7q2fabcde.17.1000.1767225600000.AAECAwQFBgcICQoLDA0ODw.ayPNmPA4XC9sgMa5QL4isA';
const ID: SessionId = {
  epoch: 'k7q2fabcde',
  partition: 17,
  from: 1000,
  createdMs: 1767225600000,
  key: 'AAECAwQFBgcICQoLDA0ODw',
};
const BINDING = { principal: 'issuer|é"1', server: 'files' };
const SECRET = new Uint8Array(32).fill(0x0b);

const binary = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const offset = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
const sessionId: fc.Arbitrary<SessionId> = fc.record({
  epoch: fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz234567'), minLength: 10, maxLength: 10 }),
  partition: fc.oneof(fc.nat(MAX_PARTITION), fc.constant(MAX_PARTITION)),
  from: offset,
  createdMs: offset,
  key: binary(16).map(makeSessionKey),
});
const binding = fc.record({ principal: fc.string({ unit: 'binary' }), server: fc.string() });
const secret = fc.uint8Array({ minLength: 1, maxLength: 100 });

describe('session ids', () => {
  it('[SID-FORM] is epoch, partition, from, created, key and mac, joined by dots', () => {
    expect(signSessionId(ID, BINDING, SECRET)).toBe(LITERAL);
    expect(parseSessionId(LITERAL)?.id).toEqual(ID);
    expect(verifySessionId(LITERAL, BINDING, [SECRET])).toEqual(ID);
  });

  it('[SID-MAC] is 16 bytes of HMAC-SHA-256 over the JSON array of the rest, the principal and the server', () => {
    const body = LITERAL.slice(0, LITERAL.lastIndexOf('.'));
    const expected = createHmac('sha256', SECRET).update(`["${body}","issuer|é\\"1","files"]`).digest().subarray(0, 16);
    expect(LITERAL.endsWith(`.${expected.toString('base64url')}`)).toBe(true);
    expect(Buffer.from(parseSessionId(LITERAL)?.mac ?? []).equals(expected)).toBe(true);
  });

  it('[SID-FORM] a key is 16 random bytes in base64url', () => {
    expect(makeSessionKey(Uint8Array.from({ length: 16 }, (_, index) => index))).toBe('AAECAwQFBgcICQoLDA0ODw');
    expect(() => makeSessionKey(new Uint8Array(15))).toThrow(TypeError);
    expect(() => makeSessionKey(new Uint8Array(17))).toThrow(TypeError);
  });

  it('[SID-FORM] what was signed is verified as the same session', () => {
    fc.assert(
      fc.property(sessionId, binding, secret, (id, bound, key) => {
        expect(verifySessionId(signSessionId(id, bound, key), bound, [key])).toEqual(id);
      }),
      { numRuns: 500 },
    );
  });

  it('[SID-FORM] is visible ASCII of at most 128 characters, for the largest values too', () => {
    fc.assert(
      fc.property(sessionId, binding, (id, bound) => {
        const text = signSessionId(id, bound, SECRET);
        expect(text).toMatch(/^[\x21-\x7e]+$/);
        expect(text.length).toBeLessThanOrEqual(128);
      }),
    );
    const max = Number.MAX_SAFE_INTEGER;
    const largest = { ...ID, partition: MAX_PARTITION, from: max, createdMs: max };
    const text = signSessionId(largest, BINDING, SECRET);
    // 10 epoch, 10 partition, 16 from, 16 created, 22 key, 22 mac, 5 dots.
    expect(text).toHaveLength(101);
    expect(verifySessionId(text, BINDING, [SECRET])).toEqual(largest);
    expect(MAX_SESSION_ID_LENGTH).toBe(128);
  });

  it('[SID-MAC] one character changed, added or taken away, anywhere, is refused', () => {
    for (let at = 0; at <= LITERAL.length; at++) {
      for (let code = 0x20; code < 0x7f; code++) {
        const character = String.fromCharCode(code);
        const changed = LITERAL.slice(0, at) + character + LITERAL.slice(at + 1);
        const added = LITERAL.slice(0, at) + character + LITERAL.slice(at);
        if (changed !== LITERAL) expect(verifySessionId(changed, BINDING, [SECRET]), changed).toBeNull();
        expect(verifySessionId(added, BINDING, [SECRET]), added).toBeNull();
      }
      const shorter = LITERAL.slice(0, at) + LITERAL.slice(at + 1);
      if (shorter !== LITERAL) expect(verifySessionId(shorter, BINDING, [SECRET]), shorter).toBeNull();
    }
  });

  it('[SID-MAC] one bit changed in any session id is refused', () => {
    fc.assert(
      fc.property(sessionId, binding, fc.nat(), fc.nat(6), (id, bound, place, bit) => {
        const text = signSessionId(id, bound, SECRET);
        const at = place % text.length;
        const flipped = String.fromCharCode(text.charCodeAt(at) ^ (1 << bit));
        expect(verifySessionId(text.slice(0, at) + flipped + text.slice(at + 1), bound, [SECRET])).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it('[SID-MAC] another principal, server or secret is refused, also where the parts join to the same text', () => {
    const other = new Uint8Array(32).fill(0x0c);
    expect(verifySessionId(LITERAL, { ...BINDING, principal: 'issuer|bob' }, [SECRET])).toBeNull();
    expect(verifySessionId(LITERAL, { ...BINDING, principal: '' }, [SECRET])).toBeNull();
    expect(verifySessionId(LITERAL, { ...BINDING, server: 'file' }, [SECRET])).toBeNull();
    expect(verifySessionId(LITERAL, BINDING, [other])).toBeNull();
    expect(verifySessionId(LITERAL, BINDING, [])).toBeNull();
    fc.assert(
      fc.property(sessionId, binding, binding, (id, bound, foreign) => {
        fc.pre(bound.principal !== foreign.principal || bound.server !== foreign.server);
        expect(verifySessionId(signSessionId(id, bound, SECRET), foreign, [SECRET])).toBeNull();
      }),
    );
    const text = signSessionId(ID, { principal: 'a","b', server: 'c' }, SECRET);
    expect(verifySessionId(text, { principal: 'a', server: 'b","c' }, [SECRET])).toBeNull();
  });

  it('[SID-ROTATE] any of the secrets verifies, wherever it stands in the list', () => {
    const next = new Uint8Array(32).fill(1);
    const third = new Uint8Array(5).fill(2);
    expect(verifySessionId(LITERAL, BINDING, [next, SECRET])).toEqual(ID);
    expect(verifySessionId(LITERAL, BINDING, [next, third, SECRET])).toEqual(ID);
    expect(verifySessionId(signSessionId(ID, BINDING, next), BINDING, [next, SECRET])).toEqual(ID);
    expect(verifySessionId(LITERAL, BINDING, [next, third])).toBeNull();
  });

  it('[SID-TOTAL] any text is a session id or null', () => {
    const nearly = fc
      .tuple(sessionId, fc.nat(), fc.string({ unit: 'binary', maxLength: 3 }), fc.nat(3))
      .map(([id, place, insert, remove]) => {
        const text = signSessionId(id, BINDING, SECRET);
        const at = place % (text.length + 1);
        return text.slice(0, at) + insert + text.slice(at + remove);
      });
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string({ unit: 'binary' })), (text) => {
        const parsed = parseSessionId(text);
        const verified = verifySessionId(text, BINDING, [SECRET]);
        if (parsed === null) expect(verified).toBeNull();
        if (verified !== null) expect(signSessionId(verified, BINDING, SECRET)).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['', 'nothing'],
    ['3f8e9a52-7a3c-4a55-9b1e-3f1f7b0f9a10', 'an id of another server'],
    [LITERAL.slice(0, LITERAL.lastIndexOf('.')), 'no mac'],
    [`${LITERAL}.`, 'a seventh field'],
    [`${LITERAL}=`, 'padding'],
    [`${LITERAL.slice(0, -1)}B`, 'spare bits in the mac'],
    [LITERAL.replace('DA0ODw', 'DA0ODx'), 'spare bits in the key'],
    [LITERAL.replace('AAECAwQF', 'AAECAw'), 'a short key'],
    [LITERAL.replace('.1000.', '.01000.'), 'a leading zero'],
    [LITERAL.replace('.1000.', '.9007199254740992.'), 'an offset above 2^53 - 1'],
    [LITERAL.replace('.17.', '.2147483648.'), 'a partition above 31 bits'],
    [LITERAL.replace('k7q2f', 'K7Q2F'), 'an epoch in capitals'],
    ['.'.repeat(5), 'empty fields'],
    ['1.'.repeat(100_000), 'a very long text'],
  ])('[SID-TOTAL] %.90j is no session id: %s', (text) => {
    expect(parseSessionId(text)).toBeNull();
    expect(verifySessionId(text, BINDING, [SECRET])).toBeNull();
  });
});
