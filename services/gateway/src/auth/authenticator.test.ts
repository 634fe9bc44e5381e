import { createHash } from 'node:crypto';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { noMetrics, silentLogger } from '@throughline/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { RefusedError } from '../answer-error.ts';
import { GatewayConfigSchema } from '../config.ts';
import type { GatewayConfig } from '../config.ts';
import { ISSUER, makeTokens, PUBLIC_URL } from '../testing/token-maker.ts';
import { Authenticator } from './authenticator.ts';
import type { Caller } from './judge-token.ts';

const ENDPOINT = { server: 'files', path: '/mcp/files' };
const START_MS = 1_800_000_000_000;
const first = await makeTokens(START_MS, 'first');
const second = await makeTokens(START_MS, 'second');

let time: VirtualTime;
let served: string;
let asked: number;

beforeEach(() => {
  time = createVirtualTime({ seed: 1, startWallMs: START_MS });
  served = JSON.stringify({ keys: [first.jwk] });
  asked = 0;
});

function create(
  config: Partial<GatewayConfig>,
  deps: Partial<ConstructorParameters<typeof Authenticator>[1]> = {},
): Authenticator {
  const full = GatewayConfigSchema.parse({
    servers: ['files', 'shop'],
    secrets: [new Uint8Array(32)],
    publicUrl: PUBLIC_URL,
    ...config,
  });
  return new Authenticator(full, {
    clock: time.clock(),
    logger: silentLogger,
    metrics: noMetrics,
    fetchKeys() {
      asked++;
      return Promise.resolve(served);
    },
    ...deps,
  });
}

const REMOTE = [
  { issuer: ISSUER, jwksUrl: 'https://id.example.com/jwks', audience: null, algorithms: ['ES256' as const] },
];

/** The principal, or the reason of the refusal, and whether it was known at once. */
async function ask(authenticator: Authenticator, token: string, endpoint = ENDPOINT): Promise<string> {
  try {
    const asked = authenticator.authenticate(endpoint, `Bearer ${token}`);
    if (asked instanceof Promise) return (await asked).principal;
    return `at once: ${asked.principal}`;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return String(error.refusal.data?.['reason']);
  }
}

const ALICE = '["https://id.example.com","alice"]';

describe('whom a request speaks for', () => {
  it('[AUTH-EVERY] a signature is checked once, everything else on every request', async () => {
    const authenticator = create({ issuers: REMOTE });
    const token = await first.sign({ aud: `${PUBLIC_URL}/mcp/files` });
    // Twice where the keys were not known before.
    expect([await ask(authenticator, token), await ask(authenticator, token)]).toEqual([ALICE, ALICE]);
    expect(await ask(authenticator, token)).toBe(`at once: ${ALICE}`);
    expect(await ask(authenticator, token, { server: 'shop', path: '/mcp/shop' })).toBe('audience');
    await time.advance(330_000);
    expect(await ask(authenticator, token)).toBe('expired');
  });

  it('[AUTH-ROTATION] a token whose key was withdrawn is refused, though its signature was checked before', async () => {
    const authenticator = create({ issuers: REMOTE });
    const token = await first.sign({ exp: START_MS / 1000 + 9000 });
    expect([await ask(authenticator, token), await ask(authenticator, token)]).toEqual([ALICE, ALICE]);
    served = JSON.stringify({ keys: [second.jwk] });
    await time.advance(300_000);
    // Asks for newer keys, and serves by those that it has.
    expect(await ask(authenticator, token)).toBe(`at once: ${ALICE}`);
    await time.settle();
    expect(await ask(authenticator, token)).toBe('unknown-key');
    expect(await ask(authenticator, await second.sign({ exp: START_MS / 1000 + 9000 }))).toBe(ALICE);
    expect(asked).toBe(2);
  });

  it('[AUTH-KEYS] tokens of several issuers and known tokens stand side by side, each by its own rules', async () => {
    const other = 'https://other.example';
    const authenticator = create({
      issuers: [first.issuer(), second.issuer({ issuer: other, audience: ['api'] })],
      tokens: [{ principal: 'ci', sha256: 'e919a75364398a449f860aeadddc57fa0502145a4e63959ddb33c417a48dc0da' }],
    });
    expect(await ask(authenticator, await first.sign())).toBe(ALICE);
    expect(await ask(authenticator, await second.sign({ iss: other, aud: 'api' }))).toBe(
      '["https://other.example","alice"]',
    );
    expect(await ask(authenticator, await second.sign({ iss: other }))).toBe('audience');
    expect(await ask(authenticator, await second.sign())).toBe('unknown-key');
    expect(await ask(authenticator, await first.sign({ iss: other, aud: 'api' }))).toBe('unknown-key');
    expect(await ask(authenticator, 'staging')).toBe('at once: ci');
    expect(await ask(authenticator, 'stagin')).toBe('malformed');
  });

  it('[AUTH-REVOKED] a list that is replaced counts at once: who stays is the same caller, who is gone is told so', async () => {
    const hashed = (token: string): string => createHash('sha256').update(token).digest('hex');
    const authenticator = create({
      tokens: [
        { principal: 'alice', sha256: hashed('tok-alice') },
        { principal: 'bob', sha256: hashed('tok-bob') },
        { principal: 'dora', sha256: hashed('tok-dora') },
      ],
    });
    const callerOf = (token: string): Caller => authenticator.authenticate(ENDPOINT, `Bearer ${token}`) as Caller;
    const [alice, bob, dora] = ['tok-alice', 'tok-bob', 'tok-dora'].map(callerOf);
    authenticator.replaceTokens([
      { principal: 'bob', sha256: hashed('tok-bob') },
      { principal: 'carol', sha256: hashed('tok-carol') },
      { principal: 'another', sha256: hashed('tok-dora') },
    ]);
    expect(await ask(authenticator, 'tok-alice')).toBe('unknown-token');
    expect(await ask(authenticator, 'tok-carol')).toBe('at once: carol');
    expect(await ask(authenticator, 'tok-dora')).toBe('at once: another');
    expect(callerOf('tok-bob')).toBe(bob);
    expect([alice, bob, dora].map((caller) => caller?.revoked?.aborted)).toEqual([true, false, true]);
  });

  it('[AUTH-REVOKED] keys of the configuration that are replaced count at once, for tokens that were verified before as well', async () => {
    const authenticator = create({ issuers: [first.issuer()] });
    const token = await first.sign();
    expect([await ask(authenticator, token), await ask(authenticator, token)]).toEqual([ALICE, `at once: ${ALICE}`]);
    authenticator.replaceKeys(ISSUER, second.issuer().keys ?? []);
    expect(await ask(authenticator, token)).toBe('unknown-key');
    expect(await ask(authenticator, await second.sign())).toBe(ALICE);
  });

  it('[AUTH-KEYS-DOWN] the warning says why, not just that a fetch failed', async () => {
    const warnings: unknown[] = [];
    const cause = new Error('connect ECONNREFUSED 127.0.0.1:1');
    const authenticator = create(
      { issuers: REMOTE },
      {
        logger: { ...silentLogger, warn: (...given) => warnings.push(given) },
        fetchKeys: () => Promise.reject(new TypeError('fetch failed', { cause })),
      },
    );
    expect(await ask(authenticator, await first.sign())).toBe('keys-unavailable');
    expect(JSON.stringify(warnings)).toContain('connect ECONNREFUSED 127.0.0.1:1');
  });

  it('[GW-AUTH] with neither tokens nor issuers everyone is the same principal', () => {
    const authenticator = create({});
    for (const header of [undefined, 'Bearer whatever'])
      expect(authenticator.authenticate(ENDPOINT, header)).toEqual({ principal: 'anonymous', untilMs: null });
  });

  it('[AUTH-BOUND] it remembers 10,000 tokens and no more', async () => {
    const authenticator = create({ issuers: [first.issuer()] });
    const tokens = [];
    for (let number = 0; number < 10_001; number++) tokens.push(await first.sign({ jti: String(number) }));
    for (const token of tokens) await authenticator.authenticate(ENDPOINT, `Bearer ${token}`);
    const [oldest = '', next = ''] = tokens;
    expect(await ask(authenticator, next)).toBe(`at once: ${ALICE}`);
    expect(await ask(authenticator, oldest)).toBe(ALICE);
  }, 120_000);

  it('[AUTH-PUBLIC-URL] issuers without a public URL are refused at the start', () => {
    expect(() => create({ issuers: REMOTE, publicUrl: null })).toThrow(TypeError);
  });
});

describe('configuration of issuers', () => {
  const parse = (issuer: object): readonly string[] =>
    GatewayConfigSchema.shape.issuers.safeParse([issuer]).error?.issues.map(({ message }) => message) ?? [];

  it.each([
    [{ issuer: ISSUER, jwksUrl: 'http://id.example.com/jwks' }, /https/],
    [{ issuer: ISSUER, jwksUrl: 'file:///jwks' }, /https/],
    [{ issuer: 'id', jwksUrl: 'https://id.example.com/jwks' }, /URL/],
    [{ issuer: ISSUER }, /either/],
    [{ issuer: ISSUER, jwksUrl: 'https://id.example.com/jwks', keys: [{ kty: 'EC' }] }, /either/],
    [{ issuer: ISSUER, keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }, /public/],
    [{ issuer: ISSUER, keys: [{ kty: 'EC', d: 'x' }] }, /private/],
    [{ issuer: ISSUER, keys: [{ kty: 'EC' }], algorithms: ['HS256'] }, /RS256/],
    [{ issuer: ISSUER, keys: [{ kty: 'EC' }], algorithms: ['none'] }, /RS256/],
    [{ issuer: ISSUER, keys: [{ kty: 'EC' }], algorithms: [] }, /./],
    [{ issuer: ISSUER, keys: [{ kty: 'EC' }], audience: [] }, /./],
  ])('[AUTH-ALGORITHM] [AUTH-KEYS] %j is refused', (issuer, fault) => {
    expect(parse(issuer)).toEqual([expect.stringMatching(fault)]);
  });

  it('[AUTH-KEYS] keys may come by http from this machine', () => {
    expect(parse({ issuer: 'http://127.0.0.1:9/', jwksUrl: 'http://127.0.0.1:9/jwks' })).toEqual([]);
  });
});
