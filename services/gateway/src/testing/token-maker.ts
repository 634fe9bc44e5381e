/** An issuer of tokens in tests: a key pair, and any token signed by it, or by what should not sign. */
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import type { JWK } from 'jose';
import type { IssuerConfig } from '../auth/auth-config.ts';

export const ISSUER = 'https://id.example.com';
export const PUBLIC_URL = 'https://mcp.example.com';

export interface TokenMaker {
  /** Its public half, named `kid`. */
  readonly jwk: JWK;
  readonly pem: string;
  /** A configuration that takes its tokens. */
  issuer(changes?: Partial<IssuerConfig>): IssuerConfig;
  /** A good token for `PUBLIC_URL` with these claims besides; `undefined` takes one away. */
  sign(claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>;
}

/** @param nowMs when its tokens are made: they live for five minutes. */
export async function makeTokens(nowMs: number, kid = 'first', alg = 'ES256'): Promise<TokenMaker> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, use: 'sig' };
  return {
    jwk,
    pem: await exportSPKI(publicKey),
    issuer: (changes = {}) => ({
      issuer: ISSUER,
      keys: [jwk as NonNullable<IssuerConfig['keys']>[number]],
      audience: null,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      ...changes,
    }),
    sign(claims = {}, header = {}) {
      const seconds = Math.floor(nowMs / 1000);
      const all = { iss: ISSUER, sub: 'alice', aud: PUBLIC_URL, iat: seconds, exp: seconds + 300, ...claims };
      const protectedHeader = { ...defined({ kid, typ: 'at+jwt', ...header }), alg };
      return new SignJWT(defined(all)).setProtectedHeader(protectedHeader).sign(privateKey);
    },
  };
}

function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
