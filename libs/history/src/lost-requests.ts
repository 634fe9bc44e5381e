/**
 * Requests that retention took from `inbound` before an owner could serve them: a fold over the accepted checkpoints of
 * `events[p]`, the same for every reader, wherever it starts. SPEC: REQ-LOST.
 */
import { readCheckpoint } from '@throughline/protocol';
import type { EventRecord, LostRequests, Offset } from '@throughline/protocol';

/** What the newest accepted checkpoint says, after `event`. Each checkpoint says all that is still held. */
export function foldLost(lost: readonly LostRequests[], event: EventRecord): readonly LostRequests[] {
  if (event.body.type !== 'checkpoint') return lost;
  const checkpoint = readCheckpoint(event.record);
  return checkpoint === null ? lost : (checkpoint.lost ?? []);
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
