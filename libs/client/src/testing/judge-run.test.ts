import { describe, expect, it } from 'vitest';
import { judgeRun } from './judge-run.ts';
import type { RunFacts } from './judge-run.ts';

const E1 = 'event 1: naïve 漢字 ✓';
const E2 = 'event 2: naïve 漢字 ✓';
const TRUE_RESULT = { kind: 'result', text: 'counted to 2' } as const;
const ERROR = { kind: 'error', error: 'Error: lost' } as const;
const HANGS = { kind: 'hangs' } as const;
const FACTS: RunFacts = {
  fault: 'crlf',
  to: 2,
  call: TRUE_RESULT,
  delivered: [E1, E2],
  saidRefused: false,
  saidUnproven: false,
  saidGaveUp: false,
  runs: 1,
  cameBackAfterMs: null,
};

describe('the verdict on a run', () => {
  it.each<[string, string, Partial<RunFacts>]>([
    ['exact', 'all events and the true result', {}],
    ['fooled', 'an event less, and the result', { delivered: [E1] }],
    ['fooled', 'the first event less', { delivered: [E2] }],
    ['fooled', 'an event twice', { delivered: [E1, E1, E2] }],
    ['fooled', 'events in the wrong order', { delivered: [E2, E1] }],
    ['fooled', 'a foreign event, though the call failed', { delivered: [E1, 'foreign event 1'], call: ERROR }],
    ['fooled', 'a false event before it refused', { delivered: [E2], call: ERROR, saidRefused: true }],
    ['fooled', 'another result', { call: { kind: 'result', text: 'foreign result' } }],
    ['unproven', 'the same, and it was said before', { delivered: [E2], saidUnproven: true }],
    ['refused', 'the call failed and a refusal was told', { delivered: [E1], call: ERROR, saidRefused: true }],
    ['failed', 'the call failed', { delivered: [E1], call: ERROR }],
    ['failed', 'the call failed behind all events', { call: ERROR }],
    ['hangs', 'nothing', { delivered: [E1], call: HANGS }],
    ['hangs', 'nothing, behind all events', { call: HANGS }],
    ['hangs', 'nothing, though a refusal was told', { delivered: [E1], call: HANGS, saidRefused: true }],
    ['ran-twice', 'the true result of two runs', { runs: 2 }],
    ['fooled', 'events that look right behind another epoch', { fault: 'epoch-changed' }],
    ['unproven', 'the same, and it was said before', { fault: 'epoch-changed', saidUnproven: true }],
    ['exact', 'the true result, where a false one was passed over', { fault: 'answer-on-wrong-stream' }],
    [
      'hasty',
      'right, but 300 ms after it was asked to wait for 400',
      { fault: 'retry-directive', cameBackAfterMs: 300 },
    ],
    ['exact', 'right, and 400 ms after it', { fault: 'retry-directive', cameBackAfterMs: 400 }],
    ['hasty', 'right, but 500 ms after Retry-After: 1', { fault: 'status-503', cameBackAfterMs: 500 }],
    ['exact', 'right, at once, where nothing was asked', { fault: 'status-409', cameBackAfterMs: 0 }],
  ])('[LIAR-VERDICT] %s: %s', (verdict, _what, facts) => {
    expect(judgeRun({ ...FACTS, ...facts })).toBe(verdict);
  });

  it.each<[string, string, Partial<RunFacts>]>([
    ['exact', 'all events', {}],
    ['fooled', 'an event twice', { delivered: [E1, E1] }],
    ['hangs', 'an event less, in silence', { delivered: [E1] }],
    ['refused', 'an event less, and a refusal', { delivered: [E1], saidRefused: true }],
    ['failed', 'an event less, and it was given up aloud', { delivered: [E1], saidGaveUp: true }],
  ])('[LIAR-VERDICT] on the standalone stream, %s: %s', (verdict, _what, facts) => {
    expect(judgeRun({ ...FACTS, call: null, ...facts })).toBe(verdict);
  });
});
