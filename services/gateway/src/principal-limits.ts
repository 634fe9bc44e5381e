/**
 * What one principal may take of a gateway: requests a second, with a burst, and open streams. Each has a share of its
 * own; where nobody is asked for a token there is nobody to tell apart, and no share. SPEC: AUTH-LIMIT.
 */
import type { Clock } from '@throughline/log';
import { refuse } from './answer-error.ts';
import { ANONYMOUS_PRINCIPAL } from './auth/judge-token.ts';
import type { GatewayConfig } from './config.ts';
import { once } from './once.ts';

type Limits = Pick<GatewayConfig, 'requestsPerSecondPerPrincipal' | 'streamsPerPrincipal'>;

/** Requests that one may make at once after silence, as seconds of its rate. */
const BURST_SECONDS = 2;
/** Principals that are remembered though they have no stream open. */
const MAX_IDLE = 10_000;

interface Share {
  /** Requests that may be made now. */
  readonly left: number;
  readonly atMs: number;
}

export type Taken = { readonly ok: true; readonly share: Share } | { readonly ok: false; readonly waitMs: number };

/** One request of a principal that was seen last with `share`; `undefined`: not seen, or forgotten, which is the same. */
export function takeRequest(share: Share | undefined, perSecond: number, nowMs: number): Taken {
  const most = perSecond * BURST_SECONDS;
  const left = Math.min(most, share === undefined ? most : share.left + ((nowMs - share.atMs) * perSecond) / 1000);
  if (left < 1) return { ok: false, waitMs: ((1 - left) * 1000) / perSecond };
  return { ok: true, share: { left: left - 1, atMs: nowMs } };
}

export class PrincipalLimits {
  readonly #limits: Limits;
  readonly #clock: Clock;
  /** Oldest use first. */
  readonly #shares = new Map<string, Share>();
  readonly #streams = new Map<string, number>();

  constructor(limits: Limits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Counts a request. Refusal: `RATE_LIMITED`, with the time after which one more is taken. */
  enter(principal: string): void {
    if (principal === ANONYMOUS_PRINCIPAL) return;
    const { requestsPerSecondPerPrincipal: perSecond } = this.#limits;
    const taken = takeRequest(this.#shares.get(principal), perSecond, this.#clock.monoMs());
    if (!taken.ok) return refuseFor(`More than ${perSecond} requests a second`, taken.waitMs);
    this.#shares.delete(principal);
    this.#shares.set(principal, taken.share);
    if (this.#shares.size <= MAX_IDLE) return;
    const oldest = this.#shares.keys().next();
    if (oldest.done !== true) this.#shares.delete(oldest.value);
  }

  /** A place for an open stream; returns the way to give it back, idempotent. Refusal: `RATE_LIMITED`. */
  openStream(principal: string): () => void {
    if (principal === ANONYMOUS_PRINCIPAL) return () => undefined;
    const open = this.#streams.get(principal) ?? 0;
    const { streamsPerPrincipal: most } = this.#limits;
    if (open >= most) refuseFor(`More than ${most} open streams`, 1000);
    this.#streams.set(principal, open + 1);
    return once(() => {
      const left = (this.#streams.get(principal) ?? 1) - 1;
      if (left === 0) this.#streams.delete(principal);
      else this.#streams.set(principal, left);
    });
  }
}

function refuseFor(what: string, waitMs: number): never {
  return refuse('RATE_LIMITED', `${what} of one principal are not served here`, {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}
