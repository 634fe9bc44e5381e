import { anchorChecksum } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { compareWithMark, joinMarks, worstFinding } from './history-mark.ts';

const record = (offset: number, timestampMs = 5): LogRecord => ({
  offset,
  timestampMs,
  key: null,
  value: null,
  headers: [],
});
const anchor = { offset: 7, check: anchorChecksum(record(7)) };
const mark = { end: 10, anchor };

describe('marks', () => {
  it.each([
    ['an end at the mark', { start: 0, end: 10 }, record(7), 'holds'],
    ['an end above it', { start: 0, end: 99 }, record(7), 'holds'],
    ['an end below it', { start: 0, end: 9 }, record(7), 'behind'],
    ['a log made anew', { start: 0, end: 0 }, null, 'behind'],
    ['another record at the anchor', { start: 0, end: 10 }, record(7, 6), 'differs'],
    ['the first record behind the anchor', { start: 0, end: 10 }, record(8), 'differs'],
    ['nothing read though the log is said to go on', { start: 0, end: 10 }, null, 'behind'],
    ['an anchor that retention took', { start: 8, end: 10 }, record(8), 'holds'],
    ['everything taken by retention', { start: 10, end: 10 }, null, 'holds'],
  ] as const)('[EPO-MARK] %s: %o', (_, bounds, first, finding) => {
    expect(compareWithMark(mark, bounds, first)).toBe(finding);
  });

  it('[EPO-MARK] without an anchor the end alone counts', () => {
    expect(compareWithMark({ end: 10, anchor: null }, { start: 0, end: 10 }, null)).toBe('holds');
    expect(compareWithMark({ end: 10, anchor: null }, { start: 0, end: 9 }, null)).toBe('behind');
  });

  it('[EPO-MARK] of several findings the one counts that says most against the log', () => {
    expect(worstFinding([])).toBe('holds');
    expect(worstFinding(['holds', 'behind'])).toBe('behind');
    expect(worstFinding(['holds', 'differs', 'behind'])).toBe('differs');
  });

  it('[EPO-MARK] of two marks the higher end counts, and the anchor that is newer', () => {
    const older = { end: 12, anchor: { offset: 3, check: 1 } };
    expect(joinMarks(mark, older)).toEqual({ end: 12, anchor });
    expect(joinMarks(older, mark)).toEqual({ end: 12, anchor });
    expect(joinMarks(null, mark)).toEqual(mark);
    expect(joinMarks({ end: 3, anchor: null }, null)).toEqual({ end: 3, anchor: null });
    expect(joinMarks(null, null)).toBeNull();
  });
});
