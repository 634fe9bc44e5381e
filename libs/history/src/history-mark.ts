/** What is known of how far the history of a partition has come, and whether the log still is what was seen. Pure. SPEC: EPO-MARK. */
import { anchorChecksum } from '@throughline/protocol';
import type { HistoryMark, LogRecord, Offset } from '@throughline/protocol';

/**
 * - `holds`: the log is what the mark says, as far as that can be seen.
 * - `behind`: it ends before what was acknowledged. Views lag, so this is a suspicion.
 * - `differs`: where the anchor was there is another record, or it is missing before one that is there.
 */
export type MarkFinding = 'holds' | 'behind' | 'differs';

/**
 * Compares a mark with the log as it is seen now.
 * @param first the first record at or after the anchor; `null` if there is none, or the mark has no anchor.
 */
export function compareWithMark(
  mark: HistoryMark,
  bounds: { readonly start: Offset; readonly end: Offset },
  first: LogRecord | null,
): MarkFinding {
  if (bounds.end < mark.end) return 'behind';
  const { anchor } = mark;
  // Retention takes anchors away; that is no break.
  if (anchor === null || anchor.offset < bounds.start) return 'holds';
  // Nothing was read where the log is said to go on: the two looks were answered by brokers that know differently much.
  if (first === null) return 'behind';
  return first.offset === anchor.offset && anchorChecksum(first) === anchor.check ? 'holds' : 'differs';
}

const BADNESS = { holds: 0, behind: 1, differs: 2 } as const satisfies Record<MarkFinding, number>;

/** Of several findings the one that says most against the log. */
export function worstFinding(findings: readonly MarkFinding[]): MarkFinding {
  return findings.reduce((worst, each) => (BADNESS[each] > BADNESS[worst] ? each : worst), 'holds');
}

/** What two marks of one partition and epoch say together. */
export function joinMarks(one: HistoryMark | null, other: HistoryMark | null): HistoryMark | null {
  if (one === null || other === null) return one ?? other;
  const isNewer = (other.anchor?.offset ?? -1) > (one.anchor?.offset ?? -1);
  return { end: Math.max(one.end, other.end), anchor: isNewer ? other.anchor : one.anchor };
}
