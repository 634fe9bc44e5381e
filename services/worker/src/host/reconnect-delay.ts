/** How long to wait before a stream is opened again. Pure. */

export interface ReconnectPolicy {
  /** Milliseconds before the first attempt if the server named none. */
  readonly initialMs: number;
  /** Milliseconds at most, if the server named none. */
  readonly maxMs: number;
}

/** A server may ask for a pause, but not for the end of the session. */
const MAX_ASKED_MS = 300_000;
/** `retry: 0` is not a reason to spin. */
const MIN_MS = 50;

/**
 * `retryMs` is the server's wish and is never undercut. `failures`: attempts without progress so far; each doubles the
 * time. `unit` in [0, 1) spreads clients: up to a quarter is added.
 */
export function reconnectDelay(
  policy: ReconnectPolicy,
  retryMs: number | undefined,
  failures: number,
  unit: number,
): number {
  const asked = Math.min(Math.max(retryMs ?? 0, MIN_MS), MAX_ASKED_MS);
  const grown = Math.min(policy.initialMs * 2 ** Math.min(failures, 20), policy.maxMs);
  // A server that names a time is polled at that time; failures still slow it down.
  const base = retryMs === undefined || failures > 1 ? Math.max(asked, grown) : asked;
  return Math.round(base * (1 + unit / 4));
}
