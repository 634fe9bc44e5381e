/**
 * What all connections of a log owe to the brokers.
 *
 * Quotas: a broker speaks to a user or a client id, and leaves only that connection unread on which it said so. On
 * another one requests would go through, and the quota would mean nothing: so all connections to that broker wait, each
 * kind of request for itself. SPEC: KAFKA-QUOTA.
 *
 * Logins: credentials that were refused are not shown again and again, by every connection that is needed: that would be
 * a storm for the broker and a reason to lock the account. SPEC: KAFKA-LOGIN.
 */
import type { Clock } from '../clock.ts';
import type { Address } from './address.ts';
import type { KafkaFailure } from './kafka-failure.ts';

export interface Courtesy {
  /** Milliseconds until a request of this API may be sent. */
  throttledMs(address: Address, apiKey: number): number;
  appendThrottledMs(address: Address): number;
  noteThrottle(address: Address, apiKey: number, ms: number): void;
  /** Why no login is tried now; `null`: it may be. */
  refusal(): KafkaFailure | null;
  noteRefusal(failure: KafkaFailure): void;
  noteLogin(): void;
}

/** Brokers ask for some seconds; what is longer is no quota. */
const LONGEST_THROTTLE_MS = 60_000;
const LOGIN_PAUSE_MS = { first: 1000, most: 10_000 } as const;
const PRODUCE = 0;
const FETCH = 1;

export function createCourtesy(clock: Clock): Courtesy {
  const throttledUntil = new Map<string, number>();
  let refused: { readonly failure: KafkaFailure; readonly untilMs: number; readonly pauseMs: number } | null = null;
  const placeOf = (address: Address, apiKey: number): string => {
    const kind = apiKey === PRODUCE || apiKey === FETCH ? apiKey : 'other';
    return `${address.host} ${address.port} ${kind}`;
  };
  const throttledMs = (address: Address, apiKey: number): number =>
    Math.max(0, (throttledUntil.get(placeOf(address, apiKey)) ?? 0) - clock.monoMs());
  return {
    throttledMs,
    appendThrottledMs: (address) => throttledMs(address, PRODUCE),
    noteThrottle(address, apiKey, ms) {
      const place = placeOf(address, apiKey);
      const until = clock.monoMs() + Math.min(ms, LONGEST_THROTTLE_MS);
      throttledUntil.set(place, Math.max(throttledUntil.get(place) ?? 0, until));
    },
    refusal: () => (refused !== null && clock.monoMs() < refused.untilMs ? refused.failure : null),
    noteRefusal(failure) {
      // Several connections may have tried at the same time.
      if (refused !== null && clock.monoMs() < refused.untilMs) return;
      const pauseMs = refused === null ? LOGIN_PAUSE_MS.first : Math.min(refused.pauseMs * 2, LOGIN_PAUSE_MS.most);
      refused = { failure, pauseMs, untilMs: clock.monoMs() + pauseMs };
    },
    noteLogin() {
      refused = null;
    },
  };
}
