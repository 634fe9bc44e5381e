/**
 * What one principal may take of a gateway: requests a second, with a burst, open streams, and new sessions an hour.
 * Each has a share of its own. Where nobody is asked for a token clients are told apart by their addresses, and have
 * shares only if the configuration says of what size. SPEC: AUTH-LIMIT, AUTH-LIMIT-SESSIONS, AUTH-LIMIT-ADDRESS.
 */
import type { Clock } from '@throughline/log';
import { refuse } from './answer-error.ts';
import { ANONYMOUS_PRINCIPAL } from './auth/judge-token.ts';
import type { Caller } from './auth/judge-token.ts';
import { addressGroup } from './client-address.ts';
import type { GatewayConfig } from './config.ts';
import type { GatewayRequest } from './exchange.ts';
import { once } from './once.ts';

/** `null`: none. */
type Limits = Pick<
  GatewayConfig,
  'requestsPerSecondPerPrincipal' | 'streamsPerPrincipal' | 'newSessionsPerHourPerPrincipal'
>;

/** Requests that one may make at once after silence, as seconds of its rate. */
const BURST_SECONDS = 2;
/** Of principals, where the configuration says nothing. */
const DEFAULT_LIMITS: Limits = {
  requestsPerSecondPerPrincipal: 1000,
  streamsPerPrincipal: 1000,
  newSessionsPerHourPerPrincipal: 10_000,
};
const HOUR_SECONDS = 3600;
/** Principals whose share is remembered, of each kind. */
const MAX_IDLE = 10_000;

interface Share {
  /** What may be taken now. */
  readonly left: number;
  readonly atMs: number;
}

/** How much may be taken: a second, and at once after silence. */
interface Rate {
  readonly perSecond: number;
  readonly atOnce: number;
}

export type Taken = { readonly ok: true; readonly share: Share } | { readonly ok: false; readonly waitMs: number };

/** One of what is rated, for a principal that was seen last with `share`; `undefined`: not seen, or forgotten, which is the same. */
export function takeOne(share: Share | undefined, { perSecond, atOnce }: Rate, nowMs: number): Taken {
  const left = Math.min(atOnce, share === undefined ? atOnce : share.left + ((nowMs - share.atMs) * perSecond) / 1000);
  if (left < 1) return { ok: false, waitMs: ((1 - left) * 1000) / perSecond };
  return { ok: true, share: { left: left - 1, atMs: nowMs } };
}

type LimitsConfig = Limits & Pick<GatewayConfig, 'tokens' | 'issuers'>;

/** The sizes of shares: of principals there are always some, of addresses only those that are configured. */
export function limitsOf({ tokens, issuers, ...given }: LimitsConfig): Limits {
  const isAsked = tokens !== null || issuers.length > 0;
  const of = (name: keyof Limits): number | null => given[name] ?? (isAsked ? DEFAULT_LIMITS[name] : null);
  return {
    requestsPerSecondPerPrincipal: of('requestsPerSecondPerPrincipal'),
    streamsPerPrincipal: of('streamsPerPrincipal'),
    newSessionsPerHourPerPrincipal: of('newSessionsPerHourPerPrincipal'),
  };
}

/** By what one who speaks here is counted; `null`: by nothing. */
export type ShareKey = string | null;

/** A caller, and whose share it uses. */
export interface Speaker extends Caller {
  readonly share: ShareKey;
}

export class PrincipalLimits {
  readonly #limits: Limits;
  readonly #hasLimits: boolean;
  readonly #clock: Clock;
  /** Of requests and of new sessions; oldest use first. */
  readonly #requests = new Map<string, Share>();
  readonly #sessions = new Map<string, Share>();
  readonly #streams = new Map<string, OpenStreams>();

  constructor(limits: Limits, clock: Clock) {
    this.#limits = limits;
    this.#hasLimits = Object.values(limits).some((limit) => limit !== null);
    this.#clock = clock;
  }

  /** Those whose address is not known have one share together: to have none must not help anybody. */
  shareOf(principal: string, request: Pick<GatewayRequest, 'clientAddress'>): ShareKey {
    // Then nobody asks for an address that nothing is done with.
    if (!this.#hasLimits) return null;
    if (principal !== ANONYMOUS_PRINCIPAL) return principal;
    const address = request.clientAddress?.();
    if (address === undefined) return null;
    return `address:${address === null ? 'unknown' : addressGroup(address)}`;
  }

  /** Counts a request. Refusal: `RATE_LIMITED`, with the time after which one more is taken. */
  enter(share: ShareKey): void {
    const { requestsPerSecondPerPrincipal: perSecond } = this.#limits;
    if (share === null || perSecond === null) return;
    const rate = { perSecond, atOnce: perSecond * BURST_SECONDS };
    this.#take(this.#requests, share, rate, `More than ${perSecond} requests a second`);
  }

  /**
   * Counts a session that is about to begin: whatever becomes of it, every gateway remembers it for one maximum life.
   * Refusal: `RATE_LIMITED`, with the time after which one more may begin.
   */
  begin(share: ShareKey): void {
    const { newSessionsPerHourPerPrincipal: perHour } = this.#limits;
    if (share === null || perHour === null) return;
    const rate = { perSecond: perHour / HOUR_SECONDS, atOnce: perHour };
    this.#take(this.#sessions, share, rate, `More than ${perHour} new sessions an hour`);
  }

  #take(shares: Map<string, Share>, key: string, rate: Rate, refused: string): void {
    const taken = takeOne(shares.get(key), rate, this.#clock.monoMs());
    if (!taken.ok) return refuseFor(refused, taken.waitMs);
    shares.delete(key);
    shares.set(key, taken.share);
    if (shares.size <= MAX_IDLE) return;
    const oldest = shares.keys().next();
    if (oldest.done !== true) shares.delete(oldest.value);
  }

  /**
   * A place for a connection with an open stream. Refusal: `RATE_LIMITED`.
   * @param stream which, if that is known: a second connection to one takes it over, and does not count beside the first,
   * whose client may be gone without a word.
   */
  openStream(share: ShareKey, stream: string | null): StreamPlace {
    const { streamsPerPrincipal: most } = this.#limits;
    if (share === null || most === null) return NO_PLACE;
    const open = this.#streams.get(share) ?? new OpenStreams();
    if (open.countWith(stream) > most) refuseFor(`More than ${most} open streams`, 1000);
    this.#streams.set(share, open);
    let name = stream;
    open.add(name);
    return {
      isOf: (known) => {
        open.remove(name);
        name = known;
        open.add(name);
      },
      leave: once(() => {
        open.remove(name);
        if (open.count === 0) this.#streams.delete(share);
      }),
    };
  }
}

/** What a connection with an open stream takes of a share. */
export interface StreamPlace {
  /** Says of which stream it is, once that is known and before it is left. */
  isOf(stream: string): void;
  /** Gives it back. Idempotent. */
  leave(): void;
}

const NO_PLACE: StreamPlace = { isOf: () => undefined, leave: () => undefined };

/** Those of one share: of the connections to one stream the second is free. */
class OpenStreams {
  count = 0;
  readonly #connections = new Map<string, number>();

  countWith(stream: string | null): number {
    return this.count + (this.#of(stream) === 1 ? 0 : 1);
  }

  add(stream: string | null): void {
    this.count = this.countWith(stream);
    if (stream !== null) this.#connections.set(stream, this.#of(stream) + 1);
  }

  remove(stream: string | null): void {
    if (stream !== null) {
      const left = this.#of(stream) - 1;
      if (left === 0) this.#connections.delete(stream);
      else this.#connections.set(stream, left);
    }
    if (this.#of(stream) !== 1) this.count--;
  }

  #of(stream: string | null): number {
    return stream === null ? 0 : (this.#connections.get(stream) ?? 0);
  }
}

function refuseFor(what: string, waitMs: number): never {
  return refuse('RATE_LIMITED', `${what} of one client are not served here`, {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}
