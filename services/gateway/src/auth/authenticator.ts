/** From an Authorization header to the caller: known tokens, and the JWTs of the issuers. SPEC: AUTH-*, GW-AUTH. */
import { failureText } from '@throughline/log';
import type { Clock } from '@throughline/log';
import { sha256 } from '@throughline/protocol';
import type { Logger, Metrics } from '@throughline/telemetry';
import type { GatewayConfig } from '../config.ts';
import type { IssuerConfig } from './auth-config.ts';
import { ANONYMOUS_PRINCIPAL, judgeToken, readBearer, refused, withoutSlash } from './judge-token.ts';
import type { Caller, TokenVerdict, VerifiedToken } from './judge-token.ts';
import { fetchKeySet, FixedKeys, RemoteKeys } from './key-source.ts';
import type { KeySource } from './key-source.ts';
import { KnownTokens } from './known-tokens.ts';
import { tokenRefusal } from './refuse-token.ts';
import type { Challenge } from './refuse-token.ts';
import { audienceOf, resourcesOf } from './resources.ts';
import { verifyToken } from './verify-token.ts';
import type { TokenIssuer } from './verify-token.ts';

/** Where nobody is asked for a token. */
const ANONYMOUS: Caller = { principal: ANONYMOUS_PRINCIPAL, untilMs: null };
/** Tokens whose signature was checked lately. */
const MAX_KNOWN = 10_000;

export interface AuthenticatorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default: {@link fetchKeySet}. */
  readonly fetchKeys?: typeof fetchKeySet;
}

interface Known {
  readonly token: VerifiedToken;
  readonly source: KeySource;
  /** Of the keys that it was verified by. */
  readonly generation: number;
}

interface Issuer extends TokenIssuer {
  readonly config: IssuerConfig;
  readonly source: KeySource;
}

/** By which of its paths a server was asked: each is a resource of its own. */
export interface Endpoint {
  readonly server: string;
  readonly path: string;
}

export class Authenticator {
  readonly #config: GatewayConfig;
  readonly #deps: AuthenticatorDeps;
  /** Null: none are configured. */
  readonly #tokens: KnownTokens | null;
  readonly #issuers: ReadonlyMap<string, Issuer>;
  readonly #challenges: ReadonlyMap<string, Challenge>;
  /** By the digest of the token, oldest first: a signature is checked once, everything else each time. */
  readonly #known = new Map<string, Known>();

  constructor(config: GatewayConfig, deps: AuthenticatorDeps) {
    if (config.issuers.length > 0 && config.publicUrl === null)
      throw new TypeError('publicUrl: needed with issuers, since their tokens and the metadata name it');
    this.#config = config;
    this.#deps = deps;
    this.#tokens = config.tokens === null ? null : new KnownTokens(config.tokens);
    this.#issuers = new Map(
      config.issuers.map((issuer) => {
        const source = this.#sourceOf(issuer);
        const { algorithms } = issuer;
        return [issuer.issuer, { issuer: issuer.issuer, algorithms, findKey: source.findKey, config: issuer, source }];
      }),
    );
    const { requiredScopes } = config;
    const resources = config.issuers.length === 0 ? [] : resourcesOf(config);
    this.#challenges = new Map(resources.map(({ path, metadataUrl }) => [path, { metadataUrl, requiredScopes }]));
  }

  /**
   * At once, unless a signature has to be checked. Throws, or rejects with, a `RefusedError`: `UNAUTHORIZED`,
   * `INSUFFICIENT_SCOPE`, `AUTH_UNAVAILABLE`.
   */
  authenticate(endpoint: Endpoint, authorization: string | undefined): Caller | Promise<Caller> {
    if (this.#tokens === null && this.#issuers.size === 0) return ANONYMOUS;
    const text = readBearer(authorization);
    if (text === null) return this.#settle(endpoint, refused('no-token'));
    const digest = Buffer.from(sha256(Buffer.from(text, 'utf8'))).toString('hex');
    const listed = this.#tokens?.callerOf(digest) ?? null;
    if (listed !== null) return listed;
    if (this.#issuers.size === 0) return this.#settle(endpoint, refused('unknown-token'));
    const known = this.#known.get(digest);
    return known !== undefined && known.source.generation() === known.generation
      ? this.#judge(endpoint, known.token)
      : this.#verify(endpoint, text, digest);
  }

  /** From now on. Where no tokens were configured there are none to replace: who may call at all is not changed by it. */
  replaceTokens(tokens: NonNullable<GatewayConfig['tokens']>): void {
    this.#tokens?.replace(tokens);
  }

  /** From now on, for an issuer whose keys the configuration holds. Tokens that were verified before are verified again. */
  replaceKeys(issuer: string, keys: NonNullable<IssuerConfig['keys']>): void {
    const source = this.#issuers.get(issuer)?.source;
    if (source instanceof FixedKeys) source.replace(keys);
  }

  /** How a client is told to authorize. */
  challengeOf({ path }: Endpoint): Challenge {
    return this.#challenges.get(path) ?? { metadataUrl: null, requiredScopes: [] };
  }

  async #verify(endpoint: Endpoint, text: string, digest: string): Promise<Caller> {
    const generations = new Map([...this.#issuers].map(([name, { source }]) => [name, source.generation()]));
    const verified = await verifyToken(text, this.#issuers, {
      nowMs: this.#deps.clock.wallMs(),
      clockToleranceMs: this.#config.clockToleranceMs,
    });
    if (!verified.ok) return this.#settle(endpoint, verified);
    const { token } = verified;
    const source = this.#issuers.get(token.issuer)?.source;
    const generation = generations.get(token.issuer);
    // Keys that changed meanwhile may be others than those that it was verified by.
    if (source !== undefined && generation === source.generation())
      this.#remember(digest, { token, source, generation });
    return this.#judge(endpoint, token);
  }

  #judge(endpoint: Endpoint, token: VerifiedToken): Caller {
    const { requiredScopes, clockToleranceMs } = this.#config;
    const configured = this.#issuers.get(token.issuer)?.config.audience?.map(withoutSlash);
    const audience = configured ?? audienceOf(this.#config, endpoint.server);
    const rules = { audience, requiredScopes, clockToleranceMs };
    return this.#settle(endpoint, judgeToken(token, rules, this.#deps.clock.wallMs()));
  }

  #settle(endpoint: Endpoint, verdict: TokenVerdict): Caller {
    if (verdict.ok) return verdict.caller;
    this.#deps.metrics.add('throughline_gateway_tokens_refused_total', 1, { reason: verdict.refusal });
    throw tokenRefusal(verdict.refusal, this.challengeOf(endpoint));
  }

  #remember(digest: string, known: Known): void {
    this.#known.delete(digest);
    this.#known.set(digest, known);
    if (this.#known.size <= MAX_KNOWN) return;
    const oldest = this.#known.keys().next();
    if (oldest.done !== true) this.#known.delete(oldest.value);
  }

  #sourceOf({ issuer, jwksUrl, keys }: IssuerConfig): KeySource {
    if (jwksUrl === undefined) return new FixedKeys(keys ?? []);
    const { clock, logger, metrics, fetchKeys = fetchKeySet } = this.#deps;
    return new RemoteKeys({
      clock,
      fetchKeys: (signal) => fetchKeys(jwksUrl, signal),
      onFailure: (error) => {
        metrics.add('throughline_gateway_key_fetch_errors_total');
        logger.warn('the keys of an issuer could not be had; those that are known go on for a day', {
          issuer,
          error: failureText(error),
        });
      },
      onPrivateKey: () => {
        logger.warn('the key set of an issuer holds a private key: whoever reads it can sign tokens', { issuer });
      },
    });
  }
}
