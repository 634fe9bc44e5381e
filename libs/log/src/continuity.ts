/**
 * Whether a partition still is what a reader has read of it. A topic that was made anew, or that lost its end, answers an
 * old position with other records and no error. Suspicion is no proof: a new leader's end may lie behind for a moment.
 * SPEC: LOG-VIEW-LOST, LOG-VIEW-DOUBT.
 */
import type { LogRecord, Offset, RecordInput } from '@throughline/protocol';
import { anchorChecksum, encodeText } from '@throughline/protocol';
import type { Log, PartitionRef } from './port.ts';

export type Continuity =
  /** The newest record read is there, or compaction took it, which proves nothing. */
  | { readonly found: 'holds' }
  /** The log ends before the position, or another record stands where one was read, and nothing says why. */
  | { readonly found: 'doubt' }
  /** Proved: an append was acknowledged below the position, or the record still differs on the leader that acknowledged one. */
  | { readonly found: 'lost'; readonly end: Offset };

/** The newest record that was read. */
export interface Anchor {
  readonly offset: Offset;
  readonly check: number;
}

export function anchorOf(record: LogRecord): Anchor {
  return { offset: record.offset, check: anchorChecksum(record) };
}

/** A tombstone of a key that nobody uses: readers take nothing from it, and compaction takes it away. */
const PROBE: RecordInput = { key: encodeText('probe'), value: null, headers: [] };

interface Place {
  readonly position: Offset;
  readonly anchor: Anchor | null;
}

/**
 * Errors: those of `Log.bounds`, `read` and `append`.
 * @param options.mayProbe whether to ask by an append what a look does not tell.
 */
export async function checkContinuity(
  log: Log,
  of: PartitionRef,
  place: Place,
  options: { readonly mayProbe: boolean; readonly signal: AbortSignal },
): Promise<Continuity> {
  const first = await look(log, of, place, options.signal);
  if (first === 'holds') return { found: 'holds' };
  if (!options.mayProbe) return { found: 'doubt' };
  const { offsets } = await log.append(of, [PROBE]);
  const at = offsets[0] ?? place.position;
  if (at < place.position) return { found: 'lost', end: at + 1 };
  const second = await look(log, of, place, options.signal);
  if (second === 'differs') return { found: 'lost', end: at + 1 };
  return { found: second === 'holds' ? 'holds' : 'doubt' };
}

async function look(
  log: Log,
  of: PartitionRef,
  { position, anchor }: Place,
  signal: AbortSignal,
): Promise<'holds' | 'short' | 'differs'> {
  const { start, end } = await log.bounds(of);
  if (position > end) return 'short';
  if (anchor === null || anchor.offset < start) return 'holds';
  const { records } = await log.read(of, anchor.offset, { maxBytes: 1, signal });
  const there = records[0];
  return there?.offset !== anchor.offset || anchorChecksum(there) === anchor.check ? 'holds' : 'differs';
}
