/** What a new owner does with a request it finds. At most once for effects, explicitly failed otherwise. SPEC: REQ-TAKEOVER. */
import type { RequestState } from './requests.ts';

/** What is known of a request's effects before it runs. `idempotent` and `none` come from annotations or the method. */
export type Effects = 'unknown' | 'idempotent' | 'none';

export interface TakeoverFacts {
  /** `undefined`: nothing in `events` speaks of it. */
  readonly state: Readonly<RequestState> | undefined;
  readonly effects: Effects;
  /** A cancel for it lies in `inbound`. */
  readonly cancelled: boolean;
  /** The session can go on here (restored, or new). If not, whatever is open fails. */
  readonly sessionLives: boolean;
  /** All that was said on its stream was said by it: it is no member of a batch, whose members share one. */
  readonly hasOwnStream: boolean;
}

export type TakeoverAction =
  | { readonly do: 'nothing' }
  /** `withMemory`: something was said on its stream, which must not be said again. */
  | { readonly do: 'dispatch'; readonly attempt: number; readonly withMemory: boolean }
  /** Ends the stream without a message: the client has cancelled. */
  | { readonly do: 'end-cancelled' }
  | { readonly do: 'fail-owner-lost'; readonly mayHaveRun: boolean };

/** A request may run at most this often. */
export const MAX_ATTEMPTS = 2;

export function decideTakeover(facts: TakeoverFacts): TakeoverAction {
  const { state, effects, cancelled, sessionLives, hasOwnStream } = facts;
  if (state?.ended === true) return { do: 'nothing' };
  if (cancelled) return { do: 'end-cancelled' };
  const hasSpoken = state?.sent === true;
  // Without effects a request may have run although no start was recorded; who spoke has run.
  const attempt = Math.max(state?.attempt ?? 0, hasSpoken || effects === 'none' ? 1 : 0);
  if (!sessionLives) return { do: 'fail-owner-lost', mayHaveRun: attempt > 0 };
  const mayRun = attempt === 0 || (effects !== 'unknown' && attempt < MAX_ATTEMPTS);
  if (mayRun && (!hasSpoken || hasOwnStream)) return { do: 'dispatch', attempt: attempt + 1, withMemory: hasSpoken };
  return { do: 'fail-owner-lost', mayHaveRun: true };
}
