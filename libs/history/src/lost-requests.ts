/**
 * Requests that retention took from `inbound` before an owner could serve them: a fold over the accepted checkpoints of
 * `events[p]`, the same for every reader, wherever it starts. SPEC: REQ-LOST.
 */
import { readCheckpoint } from '@throughline/protocol';
import type { EventRecord, LostRequests, Offset } from '@throughline/protocol';

/** Of what newer checkpoints no longer say. */
const MOST_KEPT = 256;

/**
 * What is lost after `event`. The newest accepted checkpoint says all that a reader can need that begins at it. What it no
 * longer says stays known to one that was there before, since a stream that is open there may still wait for it: the
 * newest 256 ranges.
 */
export function foldLost(lost: readonly LostRequests[], event: EventRecord): readonly LostRequests[] {
  if (event.body.type !== 'checkpoint') return lost;
  const checkpoint = readCheckpoint(event.record);
  if (checkpoint === null) return lost;
  const said = checkpoint.lost ?? [];
  const kept = lost.filter(({ from, to }) => !said.some((range) => range.from <= from && to <= range.to));
  return [...kept.slice(-MOST_KEPT), ...said];
}

/**
 * From which position of `events` on it is certain that nothing more comes for the request at `at`; `null` if that is not
 * so. What lies before may hold messages of its stream.
 */
export function lostSince(lost: readonly LostRequests[], at: Offset): Offset | null {
  const found = lost.find(({ from, to }) => from <= at && at < to);
  return found?.since ?? null;
}

/** The same for a stream on which several may wait: only when all of them are lost. */
export function allLostSince(lost: readonly LostRequests[], waiting: Iterable<Offset>): Offset | null {
  let since: Offset | null = null;
  for (const at of waiting) {
    const one = lostSince(lost, at);
    if (one === null) return null;
    since = Math.max(since ?? 0, one);
  }
  return since;
}
