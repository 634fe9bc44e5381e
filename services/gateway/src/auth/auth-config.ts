/** Whose tokens are taken: the part of the gateway's configuration that says it. SPEC: AUTH-ALGORITHM, AUTH-KEYS. */
import { z } from 'zod';

/** Never `none`, and never HMAC: whoever knows a public key could sign with it. */
export const TOKEN_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/** Keys that come over a network that others are on could be anybody's. */
function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_HOSTS.includes(url.hostname));
}

/** The issuer stands in documents that everybody reads, and keys are not fetched with a password. */
function holdsNoPassword(text: string): boolean {
  const url = URL.parse(text);
  return url === null || (url.username === '' && url.password === '');
}

const NO_PASSWORD = { error: 'must hold no user or password' };

const PublicKeySchema = z
  .looseObject({
    kty: z.enum(['RSA', 'EC', 'OKP'], { error: 'must be RSA, EC or OKP: only public keys verify tokens here' }),
    kid: z.string().optional(),
  })
  .refine((key) => !('d' in key), { error: 'is a private key; write only its public half' });

export const IssuerSchema = z
  .strictObject({
    issuer: z
      .string()
      .refine((text) => ['https:', 'http:'].includes(URL.parse(text)?.protocol ?? ''), {
        error: 'must be the URL that stands as `iss` in its tokens',
      })
      .refine(holdsNoPassword, NO_PASSWORD)
      .describe('URL of the authorization server, as it stands in `iss`, letter by letter.'),
    jwksUrl: z
      .string()
      .refine(isSafeUrl, { error: 'must be an https URL; http only on this machine' })
      .refine(holdsNoPassword, NO_PASSWORD)
      .optional()
      .describe('Where its keys are.'),
    keys: z.array(PublicKeySchema).min(1).optional().describe('Its public keys as JWKs, instead of a URL.'),
    audience: z
      .array(z.string().min(1))
      .min(1)
      .nullable()
      .default(null)
      .describe('One of these must stand in `aud`; null: the URL of the server under the public URL, or that itself.'),
    algorithms: z
      .array(z.enum(TOKEN_ALGORITHMS, { error: `must be one of ${TOKEN_ALGORITHMS.join(', ')}` }))
      .min(1)
      .default([...TOKEN_ALGORITHMS])
      .describe('Signature algorithms that are taken.'),
  })
  .refine(({ jwksUrl, keys }) => (jwksUrl === undefined) !== (keys === undefined), {
    error: 'needs either the URL of its keys or a file with them',
  });

export type IssuerConfig = z.infer<typeof IssuerSchema>;

/** A scope as RFC 6749 writes one: it stands in a header inside quotes. */
export const ScopeSchema = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope: no blanks, quotes or backslashes');

/** The origin that clients see, and a path behind it if a proxy serves this gateway under one. */
export const PublicUrlSchema = z
  .string()
  .refine(
    (text) => {
      const url = URL.parse(text);
      return (
        url !== null &&
        ['https:', 'http:'].includes(url.protocol) &&
        [url.username, url.password, url.search, url.hash].every((part) => part === '')
      );
    },
    { error: 'must be an http or https URL without a user, a password or a query, such as https://mcp.example.com' },
  )
  // Tokens would be for <url>/mcp/mcp, which is no address that a client is given.
  .refine((text) => !/\/mcp\/?$/.test(URL.parse(text)?.pathname ?? ''), {
    error: 'must end before /mcp, which clients put behind it; leave /mcp out',
  });
