/** How long clients were without messages around a fault, from the times at which each got some. */

export interface Spread {
  readonly p50Ms: number;
  readonly worstMs: number;
}

/** A silence is at least as long: five times what lies between two messages of a call. */
export const SILENCE_MS = 1000;

/** What was on its way when the fault came may arrive after it: a silence that begins so soon belongs to the fault. */
const SOON_MS = 2000;

/**
 * From the end of the fault until this client received messages again: the end of its last silence that was not over
 * by then, or began soon after. 0: it had none. `arrivals`: in order.
 */
export function timeToRecover(arrivals: readonly number[], endedAt: number): number {
  let recoveredAt = endedAt;
  for (const [index, at] of arrivals.entries()) {
    const since = arrivals[index - 1] ?? at;
    if (at > endedAt && since < endedAt + SOON_MS && at - since >= SILENCE_MS) recoveredAt = at;
  }
  return recoveredAt - endedAt;
}

/** Longest time without a message. */
export function longestSilence(arrivals: readonly number[], from: number, to: number): number {
  let longest = 0;
  let previous = from;
  for (const at of [...arrivals, to]) {
    longest = Math.max(longest, at - previous);
    previous = at;
  }
  return longest;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.map((value) => Math.round(value)).sort((a, b) => a - b);
  return { p50Ms: sorted[sorted.length >> 1] ?? 0, worstMs: sorted.at(-1) ?? 0 };
}
