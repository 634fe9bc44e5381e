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
}

export type TakeoverAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'dispatch'; readonly attempt: number }
  /** Ends the stream without a message: the client has cancelled. */
  | { readonly do: 'end-cancelled' }
  | { readonly do: 'fail-owner-lost'; readonly mayHaveRun: boolean };

/** A request may run at most this often. */
export const MAX_ATTEMPTS = 2;

export function decideTakeover({ state, effects, cancelled, sessionLives }: TakeoverFacts): TakeoverAction {
  if (state?.ended === true) return { do: 'nothing' };
  const attempt = state?.attempt ?? 0;
  if (cancelled) return { do: 'end-cancelled' };
  // Without effects a request may have run although no start was recorded: it counts as started once.
  const mayHaveRun = attempt > 0 || effects === 'none';
  if (!sessionLives) return { do: 'fail-owner-lost', mayHaveRun: mayHaveRun || state?.sent === true };
  if (attempt === 0 && state?.sent !== true) return { do: 'dispatch', attempt: mayHaveRun ? MAX_ATTEMPTS : 1 };
  if (effects !== 'unknown' && state?.sent !== true && attempt < MAX_ATTEMPTS)
    return { do: 'dispatch', attempt: attempt + 1 };
  return { do: 'fail-owner-lost', mayHaveRun: true };
}
