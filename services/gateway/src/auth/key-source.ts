/**
 * The keys of an issuer. Those of a URL are kept: a provider that is down changes nothing for a day, and no request
 * waits for it longer than 5 s. SPEC: AUTH-KEYS, AUTH-ROTATION, AUTH-KEYS-DOWN.
 */
import { createLocalJWKSet, errors } from 'jose';
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { deadline } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { IssuerConfig } from './auth-config.ts';
import { readKeySet } from './read-key-set.ts';

/** The issuer's keys are not known, or not whether they are still all that it has, and could not be asked for. */
export class KeysUnavailableError extends Error {
  override readonly name = 'KeysUnavailableError';
}

/** Keys of a set that counts as one: what was verified by it is verified as long as it is this one. */
export interface KeySource {
  readonly findKey: JWTVerifyGetKey;
  /** Equal before and after, if no key was added or taken away in between. Asked on every use: it looks for newer keys where it is time. */
  generation(): number;
}

/** Keys that the configuration holds. A key without a name is tried for every token. */
export class FixedKeys implements KeySource {
  #find: JWTVerifyGetKey;
  #generation = 0;

  constructor(keys: NonNullable<IssuerConfig['keys']>) {
    this.#find = keySet({ keys } as JSONWebKeySet);
  }

  readonly findKey: JWTVerifyGetKey = (header, token) => this.#find(header, token);

  generation(): number {
    return this.#generation;
  }

  replace(keys: NonNullable<IssuerConfig['keys']>): void {
    this.#find = keySet({ keys } as JSONWebKeySet);
    this.#generation++;
  }
}

function keySet(set: JSONWebKeySet): JWTVerifyGetKey {
  const local = createLocalJWKSet(set);
  const isNamed = set.keys.some(({ kid }) => kid !== undefined);
  // A key in a PEM file has no name, though tokens name the one that they were signed with.
  return isNamed ? local : (header, token) => local({ alg: header.alg }, { ...token, header: {} });
}

export interface RemoteKeysOptions {
  readonly clock: Clock;
  /** The text of the key set. Rejects if it does not come, or when `signal` fires. */
  fetchKeys(signal: AbortSignal): Promise<string>;
  /** Why newer keys could not be had; the kept ones go on. */
  onFailure(error: unknown): void;
  /** The issuer serves a key that only it should know; once for each set that it serves. */
  onPrivateKey(): void;
}

/** Milliseconds. */
const KEY_TIMES = {
  /** For an answer of the provider. */
  fetch: 5000,
  /** After which newer keys are asked for, while the kept ones serve. */
  fresh: 300_000,
  /** After which kept keys are not trusted any more: a key that was withdrawn must not live on for ever. */
  kept: 24 * 3600_000,
  /** Between two questions at least, whatever tokens come. */
  between: 5000,
} as const;

/** Keys at a URL. */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  #keys: { readonly find: JWTVerifyGetKey; readonly text: string; readonly generation: number } | null = null;
  /** When the kept keys were last confirmed. */
  #confirmedAtMs = 0;
  #askedAtMs: number | null = null;
  #asking: Promise<void> | null = null;
  /** The newest question was not answered: there may be keys that are not known here. */
  #isInDoubt = false;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  /** Rejects with {@link KeysUnavailableError}, or with `jose`'s error if the keys do not fit. */
  readonly findKey: JWTVerifyGetKey = async (header, token) => {
    this.#renewInTime();
    if (this.#keys === null) await this.#askUnlessJustAsked();
    const { find } = this.#keys ?? unavailable();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // Signed by a key that came after these, or by nobody's.
      await this.#askUnlessJustAsked();
      return await this.#findAgain(header, token);
    }
  };

  readonly #findAgain: JWTVerifyGetKey = async (header, token) => {
    const { find } = this.#keys ?? unavailable();
    try {
      return await find(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey && this.#isInDoubt) unavailable();
      throw error;
    }
  };

  generation(): number {
    this.#renewInTime();
    return this.#keys?.generation ?? -1;
  }

  #renewInTime(): void {
    const age = this.#options.clock.monoMs() - this.#confirmedAtMs;
    if (this.#keys !== null && age >= KEY_TIMES.kept) this.#keys = null;
    if (this.#keys !== null && age >= KEY_TIMES.fresh) void this.#askUnlessJustAsked();
  }

  /** One question at a time, and one in 5 s. Never rejects, and resolves within 5 s. */
  #askUnlessJustAsked(): Promise<void> {
    const now = this.#options.clock.monoMs();
    if (this.#asking !== null) return this.#asking;
    if (this.#askedAtMs !== null && now - this.#askedAtMs < KEY_TIMES.between) return Promise.resolve();
    this.#askedAtMs = now;
    this.#asking = this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { clock, fetchKeys, onFailure, onPrivateKey } = this.#options;
    const limit = deadline(clock, KEY_TIMES.fetch);
    try {
      const text = await fetchKeys(limit.signal);
      if (text !== this.#keys?.text) {
        const { set, hasPrivateKey } = readKeySet(text);
        this.#keys = { find: keySet(set), text, generation: (this.#keys?.generation ?? 0) + 1 };
        if (hasPrivateKey) onPrivateKey();
      }
      this.#confirmedAtMs = clock.monoMs();
      this.#isInDoubt = false;
    } catch (error) {
      this.#isInDoubt = true;
      onFailure(error);
    } finally {
      limit.dispose();
    }
  }
}

function unavailable(): never {
  throw new KeysUnavailableError('the keys of the issuer are not known');
}

const MAX_KEY_SET_BYTES = 512 * 1024;

/** Not redirected, and no more than 512 KiB. */
export async function fetchKeySet(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal, redirect: 'error', headers: { Accept: 'application/json' } });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new TypeError(`the key set at ${url} was answered with ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_KEY_SET_BYTES)
      throw new TypeError(`the key set at ${url} is larger than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
