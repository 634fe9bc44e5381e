/** What a trusted issuer may sign: claims and headers of any kind are a caller or a refusal, never a failure. */
import { noMetrics, silentLogger } from '@throughline/telemetry';
import { createVirtualTime } from '@throughline/testkit';
import { fuzzAsync, FUZZ_DEADLINE_MS } from '@throughline/testkit/fuzz';
import fc from 'fast-check';
import { CompactSign, generateKeyPair } from 'jose';
import { exportJWK } from 'jose';
import { expect, it } from 'vitest';
import { RefusedError } from '../answer-error.ts';
import { GatewayConfigSchema } from '../config.ts';
import { ISSUER, PUBLIC_URL } from '../testing/token-maker.ts';
import { Authenticator } from './authenticator.ts';

const START_MS = 1_800_000_000_000;
const NOW = START_MS / 1000;
const GOOD = { iss: ISSUER, sub: 'alice', aud: PUBLIC_URL, exp: NOW + 300, scope: 'mcp' };

/** Anything that JSON can hold, and what stands near what is right. */
const value = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  fc.constantFrom<unknown>(
    PUBLIC_URL,
    [PUBLIC_URL],
    [5],
    [PUBLIC_URL, 5],
    {},
    [],
    null,
    0,
    -1,
    1e300,
    NOW + 0.5,
    ISSUER,
    'mcp',
    ['mcp', 5],
    '__proto__',
  ),
);
const claim = fc.constantFrom(
  'iss',
  'sub',
  'aud',
  'exp',
  'nbf',
  'iat',
  'scope',
  'scp',
  'cnf',
  'jti',
  '__proto__',
  'toString',
);
const field = fc.constantFrom('typ', 'cty', 'kid', 'jwk', 'jku', 'x5c', 'x5u', 'x5t', 'zip', 'enc');
const token = fc.record({
  claims: fc.array(fc.tuple(claim, value), { maxLength: 4 }),
  header: fc.array(fc.tuple(field, value), { maxLength: 2 }),
  /** Whole sets that are no objects. */
  instead: fc.option(value, { freq: 10 }),
});

it(
  '[AUTH-JWT] whatever stands in a token with a right signature, it speaks for a subject or is 401 or 403',
  async () => {
    const { privateKey, publicKey } = await generateKeyPair('Ed25519');
    const issuer = { issuer: ISSUER, keys: [{ ...(await exportJWK(publicKey)), kty: 'OKP' as const, kid: 'first' }] };
    const config = GatewayConfigSchema.parse({
      servers: ['files'],
      secrets: [new Uint8Array(32)],
      publicUrl: PUBLIC_URL,
      requiredScopes: ['mcp'],
      issuers: [issuer],
    });
    const time = createVirtualTime({ seed: 1, startWallMs: START_MS });
    const authenticator = new Authenticator(config, { clock: time.clock(), logger: silentLogger, metrics: noMetrics });
    const seen = new Set<string>();
    const tried = await fuzzAsync('claims', token, async ({ claims, header, instead }) => {
      const payload = instead ?? { ...GOOD, ...Object.fromEntries(claims) };
      const text = await new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
        .setProtectedHeader({ kid: 'first', ...Object.fromEntries(header), alg: 'EdDSA' })
        .sign(privateKey);
      try {
        const caller = await authenticator.authenticate({ server: 'files', path: '/mcp' }, `Bearer ${text}`);
        const [iss, sub] = JSON.parse(caller.principal) as unknown[];
        expect([iss, typeof sub, sub === '']).toEqual([ISSUER, 'string', false]);
        expect(caller.untilMs).toBeGreaterThan(START_MS);
        seen.add('taken');
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        expect(['UNAUTHORIZED', 'INSUFFICIENT_SCOPE']).toContain(error.refusal.code);
        seen.add(String(error.refusal.data?.['reason']));
      }
    });
    expect(tried).toBeGreaterThan(0);
    expect([...seen]).toEqual(expect.arrayContaining(['taken', 'claims']));
  },
  FUZZ_DEADLINE_MS,
);
