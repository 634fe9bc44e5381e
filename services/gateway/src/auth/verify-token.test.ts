import { SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { ISSUER, makeTokens, PUBLIC_URL } from '../testing/token-maker.ts';
import type { TokenMaker } from '../testing/token-maker.ts';
import { FixedKeys } from './key-source.ts';
import { verifyToken } from './verify-token.ts';
import type { TokenIssuer, Verified } from './verify-token.ts';

const NOW_MS = 1_800_000_000_000;
const NOW = NOW_MS / 1000;

const first = await makeTokens(NOW_MS);
const second = await makeTokens(NOW_MS, 'second');
const rsa = await makeTokens(NOW_MS, 'rsa', 'RS256');

function issuerOf(makers: readonly TokenMaker[], algorithms = ['RS256', 'ES256'], isNamed = true): TokenIssuer {
  const keys = makers
    .flatMap((maker) => maker.issuer().keys ?? [])
    .map(({ kid, ...key }) => (isNamed ? { ...key, kid } : key));
  return { issuer: ISSUER, algorithms, findKey: new FixedKeys(keys).findKey };
}

function verify(token: string, issuer = issuerOf([first, second, rsa]), nowMs = NOW_MS): Promise<Verified> {
  return verifyToken(token, new Map([[ISSUER, issuer]]), { nowMs, clockToleranceMs: 30_000 });
}

const no = (refusal: string): object => ({ ok: false, refusal });

describe('a token', () => {
  it('[AUTH-JWT] of a trusted issuer says who it is for, who it speaks for, and how long', async () => {
    const token = {
      issuer: ISSUER,
      subject: 'alice',
      audience: [PUBLIC_URL],
      scopes: [],
      expiresAtMs: NOW_MS + 300_000,
    };
    expect(await verify(await first.sign())).toEqual({ ok: true, token });
    expect(await verify(await rsa.sign({ aud: ['a', 'b'] }))).toEqual({
      ok: true,
      token: { ...token, audience: ['a', 'b'] },
    });
  });

  it.each<[object, readonly string[]]>([
    [{ scope: 'mcp email' }, ['mcp', 'email']],
    [{ scope: ['mcp', 7, 'email'] }, ['mcp', 'email']],
    [{ scp: 'mcp' }, ['mcp']],
    [{ scp: ['mcp'] }, ['mcp']],
    [{ scope: '  ' }, []],
    [{ scope: { mcp: true } }, []],
  ])('[AUTH-SCOPE] with %j has the scopes %j', async (claims, scopes) => {
    expect(await verify(await first.sign({ ...claims }))).toMatchObject({ ok: true, token: { scopes } });
  });

  it.each<[string, Record<string, unknown>, object]>([
    ['of another issuer', { iss: 'https://evil.example' }, no('unknown-issuer')],
    ['of an issuer with a slash more', { iss: `${ISSUER}/` }, no('unknown-issuer')],
    ['without an issuer', { iss: undefined }, no('malformed')],
    ['without a subject', { sub: undefined }, no('claims')],
    ['with an empty subject', { sub: '' }, no('claims')],
    ['without an audience', { aud: undefined }, no('claims')],
    ['without an end', { exp: undefined }, no('claims')],
    ['with an end that is no number', { exp: String(NOW + 9) }, no('claims')],
    ['that has expired', { exp: NOW - 30 }, no('expired')],
    ['that is not valid yet', { nbf: NOW + 31 }, no('not-yet-valid')],
    ...[7, {}, [7], ['a', 7], null, true, [['a']]].map((aud): [string, Record<string, unknown>, object] => [
      `with the audience ${JSON.stringify(aud)}`,
      { aud },
      no('claims'),
    ]),
    ['with a subject that is no text', { sub: 7 }, no('claims')],
    ['with an issuer that is no text', { iss: { a: 1 } }, no('unknown-issuer')],
    ['with a beginning that is no number', { nbf: 'now' }, no('claims')],
    ['bound to a key of its client', { cnf: { jkt: 'x' } }, no('sender-constrained')],
  ])('[AUTH-JWT] [AUTH-TIME] %s is refused', async (_, claims, verdict) => {
    expect(await verify(await first.sign(claims))).toEqual(verdict);
  });

  it.each([{ exp: NOW - 29 }, { nbf: NOW + 30 }])(
    '[AUTH-TIME] %j is good within the clock tolerance',
    async (claims) => {
      expect(await verify(await first.sign(claims))).toMatchObject({ ok: true });
    },
  );

  it.each<[unknown, boolean]>([
    [5, false],
    [null, false],
    [{}, false],
    [['JWT'], false],
    ['at+jwt', true],
    ['application/at+jwt', true],
    ['JWT', true],
    [undefined, true],
    ['dpop+jwt', false],
    ['logout+jwt', false],
  ])('[AUTH-TYPE] of type %j is taken: %j', async (typ, ok) => {
    const verdict = await verify(await first.sign({}, { typ }));
    expect(verdict.ok ? true : verdict.refusal).toBe(ok ? true : 'type');
  });

  it.each(['', 'x', 'a.b', 'a.b.c', 'a.b.c.d.e', '..', 'eyJhbGciOiJub25lIn0..', 'e30.e30.', '....'])(
    '[AUTH-JWT] %j is no token',
    async (text) => {
      expect(await verify(text)).toEqual(no('malformed'));
    },
  );
});

describe('a signature', () => {
  it('[AUTH-ALGORITHM] none is refused', async () => {
    const token = new UnsecuredJWT({ aud: PUBLIC_URL })
      .setIssuer(ISSUER)
      .setSubject('alice')
      .setExpirationTime(NOW + 9);
    expect(await verify(token.encode())).toEqual(no('algorithm'));
  });

  it.each(['HS256', 'HS384', 'HS512'])(
    '[AUTH-ALGORITHM] by %s with a public key as its secret is refused',
    async (alg) => {
      for (const secret of [rsa.pem, JSON.stringify(rsa.jwk), rsa.jwk.n ?? '']) {
        const token = await new SignJWT({ iss: ISSUER, sub: 'alice', aud: PUBLIC_URL, exp: NOW + 9 })
          .setProtectedHeader({ alg, kid: 'rsa' })
          .sign(new TextEncoder().encode(secret.padEnd(64, ' ')));
        expect(await verify(token)).toEqual(no('algorithm'));
      }
    },
  );

  it('[AUTH-ALGORITHM] by an algorithm that is good but not configured is refused', async () => {
    expect(await verify(await first.sign(), issuerOf([first], ['RS256']))).toEqual(no('algorithm'));
  });

  it('[AUTH-JWT] of another key, or over other claims, is refused', async () => {
    const stranger = await makeTokens(NOW_MS);
    expect(await verify(await stranger.sign())).toEqual(no('signature'));
    const [head = '', , signature = ''] = (await first.sign()).split('.');
    const [, claims = ''] = (await first.sign({ sub: 'bob' })).split('.');
    expect(await verify(`${head}.${claims}.${signature}`)).toEqual(no('signature'));
  });

  it('[AUTH-KEYS] is checked by the key that the token names, and by no other', async () => {
    expect(await verify(await second.sign())).toMatchObject({ ok: true });
    expect(await verify(await second.sign({}, { kid: 'first' }))).toEqual(no('signature'));
    expect(await verify(await second.sign({}, { kid: 'third' }))).toEqual(no('unknown-key'));
  });

  it('[AUTH-KEYS] of a token that names no key is checked by each that fits', async () => {
    expect(await verify(await second.sign({}, { kid: undefined }))).toMatchObject({ ok: true });
    const stranger = await makeTokens(NOW_MS);
    expect(await verify(await stranger.sign({}, { kid: undefined }))).toEqual(no('signature'));
  });

  it('[AUTH-KEYS] by a key without a name, as in a PEM file, is checked whatever key the token names', async () => {
    expect(await verify(await first.sign({}, { kid: 'any' }), issuerOf([first], ['ES256'], false))).toMatchObject({
      ok: true,
    });
    const both = issuerOf([first, second], ['ES256'], false);
    expect(await verify(await second.sign({}, { kid: 'any' }), both)).toMatchObject({ ok: true });
  });

  it.each([
    { kty: 'RSA', kid: 'rsa', n: 7, e: 'AQAB' },
    { kty: 'RSA', kid: 'rsa' },
    { kty: 'RSA', kid: 'rsa', n: 'AQAB', e: 'AQAB' },
  ] as const)('[AUTH-KEYS-DOWN] by the key %j, which cannot be used, is not said to be wrong', async (key) => {
    const issuer = { issuer: ISSUER, algorithms: ['RS256'], findKey: new FixedKeys([key]).findKey };
    expect(await verify(await rsa.sign(), issuer)).toEqual(no('keys-unavailable'));
  });
});
