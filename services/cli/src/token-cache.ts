/** Keeps an access token for most of its life, for all who need it. */
import type { Clock } from '@throughline/log';

export interface FetchedToken {
  readonly token: string;
  /** Null: its issuer did not say; then it is used once. */
  readonly lifeMs: number | null;
}

/** Behind it a new one is asked for, with time left for another try. */
const FRESH_SHARE = 0.8;
/** A token that ends sooner is not handed out: the login has to reach the broker. */
const LEAST_LEFT_MS = 2000;

/**
 * Asks with `fetch` when there is no fresh token, once for all who wait. If that fails, a token that has not ended
 * yet serves on; without one the error is told, and whoever asks next makes the next try. Errors: those of `fetch`.
 */
export function createTokenCache(
  fetch: () => Promise<FetchedToken>,
  clock: Pick<Clock, 'monoMs'>,
): () => Promise<string> {
  let held: { readonly token: string; readonly freshUntilMs: number; readonly endsAtMs: number } | null = null;
  let underWay: Promise<string> | null = null;

  const renew = async (): Promise<string> => {
    // What it takes to arrive is part of its life.
    const askedMs = clock.monoMs();
    try {
      const { token, lifeMs } = await fetch();
      held =
        lifeMs === null ? null : { token, freshUntilMs: askedMs + lifeMs * FRESH_SHARE, endsAtMs: askedMs + lifeMs };
      return token;
    } catch (error) {
      if (held !== null && clock.monoMs() + LEAST_LEFT_MS < held.endsAtMs) return held.token;
      held = null;
      throw error;
    } finally {
      underWay = null;
    }
  };

  return async () => {
    if (held !== null && clock.monoMs() < held.freshUntilMs) return held.token;
    underWay ??= renew();
    return await underWay;
  };
}
