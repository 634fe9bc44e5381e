import { describe, expect, it } from 'vitest';
import { longestSilence, spreadOf, timeToRecover } from './recovery.ts';
import { judgeRuns } from './tally.ts';

describe('timeToRecover', () => {
  it('[FLT-TABLE] is from the end of the fault to the end of the last silence of a second or more that was not over by then', () => {
    expect(timeToRecover([0, 200, 400, 9000, 9200], 5000)).toBe(4000);
    expect(timeToRecover([0, 200, 6000, 6200, 9000, 9200], 5000)).toBe(4000);
    // Messages were on their way; then came the silence.
    expect(timeToRecover([0, 200, 5100, 5300, 8300, 8500], 5200)).toBe(3100);
    // Some other silence, later.
    expect(timeToRecover([0, 200, 6000, 6500, 7000, 7100, 9000], 5000)).toBe(1000);
    expect(timeToRecover([0, 3000, 3200, 5100, 5300], 5000)).toBe(100);
    expect(timeToRecover([0, 4800, 5000, 5200, 5400], 5000)).toBe(0);
    expect(timeToRecover([0, 3000, 3900, 4800], 5000)).toBe(0);
  });

  it('[FLT-TABLE] silences and their spread', () => {
    expect(longestSilence([100, 200, 700], 0, 1000)).toBe(500);
    expect(longestSilence([], 0, 1000)).toBe(1000);
    expect(spreadOf([5, 1, 3])).toEqual({ p50Ms: 3, worstMs: 5 });
    expect(spreadOf([])).toEqual({ p50Ms: 0, worstMs: 0 });
  });
});

describe('judgeRuns', () => {
  it('[FLT-ONCE] finds calls that ran twice, that have a result without a run, and that ran though they were told not to have', () => {
    const ends = [
      { call: 'a', ended: 'result' },
      { call: 'b', ended: 'result' },
      { call: 'c', ended: 'not run' },
      { call: 'd', ended: 'not run' },
      { call: 'e', ended: 'unknown' },
    ] as const;
    expect(judgeRuns(['a', 'c', 'x', 'x'], ends).map(({ kind, what }) => [kind, what.split(' ')[0]])).toEqual([
      ['run twice', 'x'],
      ['wrong', 'b'],
      ['wrong', 'c'],
    ]);
    expect(judgeRuns(['a', 'b', 'e', 'y'], ends)).toEqual([]);
  });
});
