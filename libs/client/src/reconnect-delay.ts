/** How long to wait before the next attempt. Pure. SPEC: CLIENT-BACKOFF. */

export interface DelayOptions {
  /** Attempts since the server was last heard, from 0. */
  readonly attempt: number;
  /** `retry:` of the stream, if the server said one. */
  readonly retryMs: number | null;
  /** `Retry-After` of the last answer. */
  readonly retryAfterMs?: number | undefined;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  /** Between 0 and 1. */
  readonly unit: number;
}

/** What the server asks for is a floor, up to this; a tenth at most is added, so that not all clients come at once. */
const MAX_ASKED_MS = 60_000;

export function reconnectDelay(options: DelayOptions): number {
  const { attempt, retryMs, retryAfterMs, initialDelayMs, maxDelayMs, unit } = options;
  const backoff = Math.min(maxDelayMs, initialDelayMs * 2 ** Math.min(attempt, 30)) * (0.5 + unit / 2);
  const asked = Math.max(retryMs ?? 0, retryAfterMs ?? 0);
  const floor = Math.min(asked, MAX_ASKED_MS) * (1 + unit / 10);
  // A server that closes to be polled means what it says; where an attempt has failed, backoff counts as well.
  return retryMs !== null && attempt === 0 ? floor : Math.max(floor, backoff);
}
