/** The epoch in force: a fold over the `epoch/…` records of `meta` in log order. SPEC: EPO-*. */
import type { Epoch, EpochRecord, Offset } from '@throughline/protocol';

/**
 * Folds one candidate: it counts only if it belongs to this cluster and names the epoch in force as its predecessor,
 * so of several candidates the first in the log wins.
 */
export function foldEpoch(current: Epoch | null, candidate: EpochRecord, clusterId: string): Epoch | null {
  return candidate.clusterId === clusterId && candidate.previous === current ? candidate.token : current;
}

/**
 * Whether an acknowledged append proves that the history broke: it got an offset that was already acknowledged or read
 * in this epoch. Anything less (an end behind, a fetch out of range, a cursor that differs) is suspicion only.
 * @param highest the highest offset acknowledged or read before in this epoch; -1 if none.
 */
export function provesBreak(acked: Offset, highest: Offset): boolean {
  return acked <= highest;
}
