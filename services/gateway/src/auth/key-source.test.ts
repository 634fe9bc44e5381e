import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { exportJWK, generateKeyPair } from 'jose';
import { describe, expect, it } from 'vitest';
import { makeTokens } from '../testing/token-maker.ts';
import { fetchKeySet, KeysUnavailableError, RemoteKeys } from './key-source.ts';

const first = await makeTokens(0, 'first');
const second = await makeTokens(0, 'second');
const setOf = (...makers: readonly (typeof first)[]): string => JSON.stringify({ keys: makers.map(({ jwk }) => jwk) });

interface Provider {
  readonly time: VirtualTime;
  readonly keys: RemoteKeys;
  readonly failures: unknown[];
  privates: number;
  asked: number;
  /** A key set, or `down`, or `silent`. */
  answer: string;
  /** What is found, by key; `unavailable`, `unknown`. */
  find(kid: string): Promise<string>;
}

function createProvider(answer: string): Provider {
  const time = createVirtualTime({ seed: 1 });
  const failures: unknown[] = [];
  const provider: Provider = {
    time,
    failures,
    privates: 0,
    asked: 0,
    answer,
    keys: new RemoteKeys({
      clock: time.clock(),
      async fetchKeys(signal) {
        provider.asked++;
        if (provider.answer === 'down') throw new TypeError('connection refused');
        if (provider.answer === 'silent')
          await new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reject(new TypeError('no answer'));
            });
          });
        return provider.answer;
      },
      onFailure: (error) => failures.push(error),
      onPrivateKey: () => provider.privates++,
    }),
    find: (kid) =>
      time.run(
        Promise.resolve(provider.keys.findKey({ alg: 'ES256', kid }, { payload: '', signature: '' })).then(
          () => kid,
          (error: unknown) => (error instanceof KeysUnavailableError ? 'unavailable' : 'unknown'),
        ),
      ),
  };
  return provider;
}

describe('the keys of an issuer at a URL', () => {
  it('[AUTH-KEYS] are asked for once and kept', async () => {
    const provider = createProvider(setOf(first));
    expect([await provider.find('first'), await provider.find('first')]).toEqual(['first', 'first']);
    expect(provider.asked).toBe(1);
  });

  it('[AUTH-ROTATION] a key that came later is found at once, one that nobody has is asked for every 5 s at most', async () => {
    const provider = createProvider(setOf(first));
    await provider.find('first');
    provider.answer = setOf(first, second);
    expect(await provider.find('second')).toBe('unknown');
    await provider.time.advance(5000);
    expect(await provider.find('second')).toBe('second');
    expect(provider.asked).toBe(2);
    for (let times = 0; times < 100; times++) expect(await provider.find(`nobody's ${times}`)).toBe('unknown');
    expect(provider.asked).toBe(2);
  });

  it('[AUTH-ROTATION] after 5 min newer ones are asked for while the kept ones serve, and one that was withdrawn is gone', async () => {
    const provider = createProvider(setOf(first));
    await provider.find('first');
    const generation = provider.keys.generation();
    provider.answer = setOf(second);
    await provider.time.advance(299_000);
    expect(provider.keys.generation()).toBe(generation);
    await provider.time.advance(1000);
    expect(await provider.find('first')).toBe('first');
    await provider.time.settle();
    expect(provider.keys.generation()).not.toBe(generation);
    expect(await provider.find('first')).toBe('unknown');
    expect(await provider.find('second')).toBe('second');
  });

  it('[AUTH-ROTATION] the same keys asked for again are the same generation', async () => {
    const provider = createProvider(setOf(first));
    await provider.find('first');
    const generation = provider.keys.generation();
    await provider.time.advance(300_000);
    await provider.find('first');
    await provider.time.settle();
    expect(provider.asked).toBe(2);
    expect(provider.keys.generation()).toBe(generation);
  });

  it.each(['down', 'silent', '<html>', '{"keys":[]}'])(
    '[AUTH-KEYS-DOWN] a key that nobody has heard of is not said to be wrong while the provider answers %s: it may have come meanwhile',
    async (answer) => {
      const provider = createProvider(setOf(first));
      await provider.find('first');
      provider.answer = answer;
      await provider.time.advance(5000);
      expect(await provider.find('second')).toBe('unavailable');
      // Nor in the 5 s in which nobody is asked.
      expect(await provider.find('second')).toBe('unavailable');
      expect(await provider.find('first')).toBe('first');
      provider.answer = setOf(first);
      await provider.time.advance(5000);
      expect(await provider.find('second')).toBe('unknown');
    },
  );

  it.each([
    ['named', (jwk: object) => jwk],
    ['without a name', (jwk: object) => ({ ...jwk, kid: undefined })],
  ])('[AUTH-KEYS] a private key in a set, %s, counts by its public half, which is told once', async (_, change) => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = change({ ...(await exportJWK(privateKey)), kid: 'first', key_ops: ['sign'] });
    const provider = createProvider(JSON.stringify({ keys: [jwk] }));
    expect([await provider.find('first'), await provider.find('first')]).toEqual(['first', 'first']);
    await provider.time.advance(300_000);
    expect(await provider.find('first')).toBe('first');
    await provider.time.settle();
    expect([provider.privates, provider.failures, provider.asked]).toEqual([1, [], 2]);
  });

  it('[AUTH-KEYS] what is no key beside good ones changes nothing', async () => {
    const provider = createProvider(
      JSON.stringify({ keys: [null, 5, 'key', [], {}, { kty: 'oct', k: 'AA' }, first.jwk] }),
    );
    expect(await provider.find('first')).toBe('first');
    expect(provider.failures).toEqual([]);
  });

  it.each([
    ['none', []],
    ['no object', [null, 5]],
    ['a secret', [{ kty: 'oct', kid: 'first', k: 'c2VjcmV0', alg: 'HS256' }]],
    ['one for encryption', [{ ...first.jwk, use: 'enc' }]],
    ['one that may not verify', [{ ...first.jwk, key_ops: ['encrypt'] }]],
    ['one of an algorithm that is none of signatures', [{ ...first.jwk, alg: 'ECDH-ES' }]],
    ['one that is cut', [{ ...first.jwk, x: 'AA' }]],
    ['one of a curve that signs nothing', [{ kty: 'OKP', crv: 'X25519', kid: 'first', x: 'A'.repeat(43) }]],
    ['a short one', [{ kty: 'RSA', kid: 'first', n: 'A'.repeat(170) + 'w', e: 'AQAB' }]],
  ])('[AUTH-KEYS-DOWN] an answer with %s replaces nothing', async (_, keys) => {
    const provider = createProvider(setOf(first));
    await provider.find('first');
    provider.answer = JSON.stringify({ keys });
    await provider.time.advance(300_000);
    const generation = provider.keys.generation();
    await provider.time.settle();
    expect(provider.failures).toHaveLength(1);
    expect(provider.keys.generation()).toBe(generation);
    expect(await provider.find('first')).toBe('first');
  });

  it.each(['down', 'silent', 'no JSON', '{"keys":7}', '{"keys":[]}'] as const)(
    '[AUTH-KEYS-DOWN] a provider that is %s leaves the kept keys for a day, and then none',
    async (answer) => {
      const provider = createProvider(setOf(first));
      await provider.find('first');
      provider.answer = answer;
      await provider.time.advance(24 * 3600_000 - 1000);
      const before = provider.time.clock().monoMs();
      expect(await provider.find('first')).toBe('first');
      expect(provider.time.clock().monoMs()).toBe(before);
      await provider.time.advance(10_000);
      expect(provider.failures.length).toBeGreaterThan(0);
      expect(await provider.find('first')).toBe('unavailable');
      provider.answer = setOf(first);
      await provider.time.advance(5000);
      expect(await provider.find('first')).toBe('first');
    },
  );

  it('[AUTH-KEYS-DOWN] no request waits longer than 5 s, and after that none waits for 5 s', async () => {
    const provider = createProvider('silent');
    const clock = provider.time.clock();
    expect(await provider.find('first')).toBe('unavailable');
    expect(clock.monoMs()).toBe(5000);
    provider.answer = setOf(first);
    expect(await provider.find('first')).toBe('first');
  });
});

describe('a key set over HTTP', () => {
  async function fetchFrom(answer: RequestListener): Promise<string> {
    const server = createServer(answer);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
      return await fetchKeySet(url, AbortSignal.timeout(20_000));
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it('[AUTH-KEYS] is read whole', async () => {
    expect(await fetchFrom((_, response) => response.end('{"keys":[]}'))).toBe('{"keys":[]}');
  });

  it('[AUTH-KEYS] is refused if it is too large, elsewhere, or an error', async () => {
    await expect(fetchFrom((_, response) => response.end('x'.repeat(512 * 1024 + 1)))).rejects.toThrow(/larger/);
    await expect(fetchFrom((_, response) => response.writeHead(302, { Location: '/x' }).end())).rejects.toThrow();
    await expect(fetchFrom((_, response) => response.writeHead(500).end('{"keys":[]}'))).rejects.toThrow(/500/);
  });
});
