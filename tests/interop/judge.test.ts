import { formatEventId, parseEventId } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { DriverError } from './interop-client.ts';
import { formatInteropTable, formatInteropTally, isRowRight } from './interop-table.ts';
import type { InteropRow } from './interop-table.ts';
import { describeOutcome, judgeCall, judgeGone, judgeRefusal, STEPS } from './judge.ts';
import type { CallSeen, Seen, Step } from './judge.ts';
import { beyondTheEnd } from './read-wire.ts';
import type { Outcome } from './trial.ts';
import type { WireAnswer } from './wire.ts';

const ID = 'plgrgbzsmy.1.40.r30~7.2.Xh0anzocLl4dCnucPwAAAA';
const TERMINAL = 'plgrgbzsmy.1.40.r30~7.end.Xh0anzocLl4dCnucPwAAAA';

interface AnswerParts extends Partial<WireAnswer> {
  readonly steps?: readonly number[];
  readonly id?: string;
}

function answer({ steps = [], id = ID, ...parts }: AnswerParts): WireAnswer {
  return {
    ...{ httpMethod: 'GET', method: undefined, lastEventId: undefined, sessionId: 's', status: 200 },
    ...{ askedMs: 0, answeredMs: 0, isOpen: false },
    items: [
      { kind: 'event', data: '', id },
      ...steps.map((progress) => ({ kind: 'event' as const, data: JSON.stringify({ params: { progress } }), id })),
    ],
    ...parts,
  };
}

const done: Outcome = { kind: 'result', text: 'done 4', ms: 1 };
const failed: Outcome = { kind: 'error', error: new DriverError('refused', -32001, { reason: 'beyond-end' }), ms: 1 };
const cutCall: CallSeen = {
  ...{ steps: 4, outcome: done, reported: [1, 2, 3, 4], late: 0, mustBeCut: true },
  answers: [
    answer({ httpMethod: 'POST', method: 'tools/call', steps: [1, 2] }),
    answer({ id: 'plgrgbzsmy.1.3.s3.0.Xh0anzocLl4dCnucPwAAAA' }),
    answer({ lastEventId: ID, steps: [3, 4] }),
  ],
};

describe('a call', () => {
  it('[INTEROP-CALL] is right if each step came once and in order, was reported so, and the connection was cut on the way', () => {
    expect(judgeCall(cutCall)).toEqual({ isRight: true, text: '4 of 4 steps, result, 1 resume' });
    expect(judgeCall({ ...cutCall, late: 1 }).text).toBe('4 of 4 steps, result, 1 resume, 1 reported after the result');
    expect(judgeCall({ ...cutCall, reported: null }).text).toBe('result (it asks for no progress), 1 resume');
  });

  it('[INTEROP-CALL] gives again what came after an older cursor if the client names that, and says so', () => {
    const cursor = (seq: number): string => ID.replace('.2.', `.${seq}.`);
    const of = (olderSeq: number, third: readonly number[]): Seen =>
      judgeCall({
        ...cutCall,
        reported: [1, 2, 3, ...third],
        answers: [
          answer({ httpMethod: 'POST', method: 'tools/call', steps: [1, 2] }),
          answer({ lastEventId: cursor(2), steps: [3] }),
          answer({ lastEventId: cursor(olderSeq), steps: third }),
        ],
      });
    expect(of(2, [3, 4])).toEqual({
      isRight: true,
      text: '4 of 4 steps, result, 2 resumes; 1 steps again, since it came back with an older cursor than its last',
    });
    expect(of(3, [3, 4]).isRight).toBe(false);
  });

  it.each<[string, Partial<CallSeen>, string]>([
    ['failed', { outcome: failed }, 'fails: refused (-32001, reason beyond-end)'],
    ['hangs', { outcome: { kind: 'nothing', ms: 20_000 } }, 'nothing within 20 s'],
    ['has another result', { outcome: { ...done, text: 'done 3' } }, 'another result: done 3'],
    ['reports a step twice', { reported: [1, 2, 2, 3, 4] }, 'it reported 5 of 4 steps'],
    [
      'misses a step',
      { answers: [answer({ method: 'tools/call', steps: [1, 2] }), answer({ lastEventId: ID, steps: [4] })] },
      '3 of 4 steps came, not each once and in order',
    ],
    [
      'was not cut',
      { answers: [answer({ method: 'tools/call', steps: [1, 2, 3, 4] })] },
      'its connection was never cut',
    ],
  ])('[INTEROP-CALL] that %s is wrong', (_what, change, text) => {
    const seen = judgeCall({ ...cutCall, ...change });
    expect(seen.isRight).toBe(false);
    expect(seen.text).toContain(text);
  });
});

describe('a refusal', () => {
  const refused = answer({ lastEventId: ID, id: TERMINAL });

  it('[INTEROP-REFUSED] is right if it came and the call failed; what the next call came to is said', () => {
    const seen = judgeRefusal({ outcome: failed, answers: [refused], next: { kind: 'nothing', ms: 20_000 } });
    expect(seen).toEqual({
      isRight: true,
      text: 'fails: refused (-32001, reason beyond-end); next call: nothing within 20 s',
    });
  });

  it('[INTEROP-REFUSED] is wrong if the call hangs or is answered, or if the client never came back', () => {
    expect(judgeRefusal({ outcome: { kind: 'nothing', ms: 1 }, answers: [refused], next: null }).isRight).toBe(false);
    expect(judgeRefusal({ outcome: done, answers: [refused], next: null }).isRight).toBe(false);
    expect(judgeRefusal({ outcome: failed, answers: [answer({})], next: null }).text).toContain('it never resumed');
  });

  it('[INTEROP-REFUSED] is brought about by a cursor of the same call, of an event that never was', () => {
    expect(parseEventId(beyondTheEnd(ID))?.offset).toBe((parseEventId(ID)?.offset ?? 0) + 1_000_000);
    for (const other of ['plgrgbzsmy.1.3.s3.0.Xh0anzocLl4dCnucPwAAAA', TERMINAL, 'nonsense'])
      expect(beyondTheEnd(other)).toBe(other);
    expect(formatEventId(parseEventId(ID)!)).toBe(ID);
  });
});

describe('a session that is gone', () => {
  const gone = answer({ method: 'tools/call', status: 404 });
  const began = answer({ method: 'initialize' });

  it('[INTEROP-GONE] is right if the client fails the call or begins a session by itself, and a new one works', () => {
    expect(judgeGone({ outcome: failed, answers: [gone], again: done }).isRight).toBe(true);
    const itself = judgeGone({ outcome: done, answers: [gone, began], again: done });
    expect(itself).toEqual({ isRight: true, text: 'began a session by itself and called again; a new session works' });
  });

  it('[INTEROP-GONE] is wrong if the call hangs, is answered by a session that is over, or nothing works afterwards', () => {
    expect(judgeGone({ outcome: { kind: 'nothing', ms: 1 }, answers: [gone], again: done }).isRight).toBe(false);
    expect(judgeGone({ outcome: done, answers: [gone], again: done }).isRight).toBe(false);
    expect(judgeGone({ outcome: failed, answers: [], again: done }).isRight).toBe(false);
    expect(judgeGone({ outcome: failed, answers: [gone], again: failed }).isRight).toBe(false);
  });
});

describe('the table', () => {
  const all = (seen: Seen): Record<Step, Seen> => Object.fromEntries(STEPS.map((step) => [step, seen])) as never;
  const right: InteropRow = { name: 'One', version: '1.0', seen: all({ isRight: true, text: 'well' }) };
  const wrong: InteropRow = {
    ...{ name: 'Two', version: '2' },
    seen: { ...all({ isRight: true, text: 'well' }), kill: { isRight: false, text: 'lost' } },
  };
  const skipped: InteropRow = { name: 'Three', skipped: 'no compiler' };

  it('[INTEROP-SKIPPED] a client that cannot be had is named with the reason, counted as skipped, and no failure', () => {
    expect(formatInteropTally([right, wrong, skipped])).toBe('11 passed, 1 failed, 6 skipped');
    expect([right, wrong, skipped].map(isRowRight)).toEqual([true, false, true]);
    expect(formatInteropTable([skipped])).toBe('client  version  step     seen\nThree   -        skipped  no compiler');
  });

  it('[INTEROP-CALL] every step of every client has a line, and a wrong one says so', () => {
    const lines = formatInteropTable([right, wrong]).split('\n');
    expect(lines).toHaveLength(13);
    expect(lines.filter((line) => line.includes('WRONG'))).toEqual(['Two     2        kill        WRONG: lost']);
  });

  it('[INTEROP-CALL] what an error says stays one line that fits a table', () => {
    const said = describeOutcome({ kind: 'error', error: new Error(`a|b\n${'x'.repeat(500)}`), ms: 1 });
    expect(said).toMatch(/^fails: a\/b x+…$/);
    expect(said.length).toBeLessThan(160);
  });
});
