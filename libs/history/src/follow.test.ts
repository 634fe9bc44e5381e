import { requestStream, STANDALONE, standaloneStream } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import {
  aliased,
  attached,
  checkpointed,
  claimed,
  closed,
  eventAt,
  released,
  sent,
  sessionEnded,
  started,
  streamEnded,
} from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { beginsAtSessionStart, foldStandalone, follow, NO_STANDALONE_HISTORY, startFollowing } from './follow.ts';
import type { Following } from './follow.ts';

const r = requestStream;
const s = standaloneStream;
type Placed = readonly [offset: number, input: RecordInput];

/** What the connection does with each record, until it is over. */
function steps(start: Following, ...records: readonly Placed[]): string[] {
  let state = start;
  const done: string[] = [];
  for (const [offset, input] of records) {
    const [next, step] = follow(state, eventAt(input, offset));
    state = next;
    done.push(step.do === 'deliver' && step.end ? 'deliver-end' : step.do);
    if (!['skip', 'live', 'deliver'].includes(step.do) || (step.do === 'deliver' && step.end)) break;
  }
  return done;
}

describe('following a request stream', () => {
  it('[RES-FOLLOW] a POST delivers the messages of its stream alone, to the one with the end mark', () => {
    expect(
      steps(
        startFollowing(r(5), null),
        [10, started('k', r(5), 1)],
        [11, sent('k', r(5), '{}')],
        [12, sent('k', r(6), '{}')],
        [13, sent('k', STANDALONE, '{}')],
        [14, sent('k', r(5), '{}', { end: true })],
      ),
    ).toEqual(['skip', 'deliver', 'skip', 'skip', 'deliver-end']);
  });

  it('[RES-FOLLOW] answers to single members of a batch do not end its stream', () => {
    expect(
      steps(
        startFollowing(r(5), null),
        [10, sent('k', r(5), '{}', { answers: 6 })],
        [11, sent('k', r(5), '{}', { answers: 5, end: true })],
      ),
    ).toEqual(['deliver', 'deliver-end']);
  });

  it('[RES-FOLLOW] the end of the stream without a message finishes it', () => {
    expect(steps(startFollowing(r(5), null), [10, streamEnded('k', r(6))], [11, streamEnded('k', r(5))])).toEqual([
      'skip',
      'finish',
    ]);
  });

  it('[RES-FOLLOW] records of the partition and of other things are skipped', () => {
    expect(
      steps(
        startFollowing(r(5), null),
        [10, claimed('w', 'epochaaaaa', null)],
        [11, checkpointed(10)],
        [12, released(10)],
        [13, aliased('k', r(5), r(4))],
        [14, attached('k', STANDALONE, 'x')],
        [15, attached('k', r(6), 'y')],
        [16, closed('k', r(6))],
      ),
    ).toEqual(['skip', 'skip', 'skip', 'skip', 'skip', 'skip', 'skip']);
  });

  it('[RES-NEWEST] a POST is superseded by any attachment to its stream', () => {
    expect(steps(startFollowing(r(5), null), [10, attached('k', r(5), 'other')])).toEqual(['superseded']);
  });

  it('[RES-NEWEST] a resume ignores older attachments in replay, is live at its own, and gives way to a newer one', () => {
    expect(
      steps(
        startFollowing(r(5), 'mine'),
        [10, attached('k', r(5), 'older')],
        [11, sent('k', r(5), '{}')],
        [12, attached('k', r(5), 'mine')],
        [13, sent('k', r(5), '{}')],
        [14, attached('k', r(5), 'newer')],
      ),
    ).toEqual(['skip', 'deliver', 'live', 'deliver', 'superseded']);
  });

  it('[RES-FOLLOW] a wish to close concerns the connection attached at its place, not one that replays it', () => {
    expect(steps(startFollowing(r(5), null), [10, closed('k', r(5))])).toEqual(['close']);
    expect(
      steps(
        startFollowing(r(5), 'mine'),
        [10, closed('k', r(5))],
        [11, attached('k', r(5), 'mine')],
        [12, closed('k', r(5))],
      ),
    ).toEqual(['skip', 'live', 'close']);
  });

  it('[RES-FOLLOW] the end of the session ends every connection, also in replay', () => {
    expect(steps(startFollowing(r(5), null), [10, sessionEnded('k')])).toEqual(['session-ended']);
    expect(steps(startFollowing(r(5), 'mine'), [10, sessionEnded('k')])).toEqual(['session-ended']);
    expect(steps(startFollowing(s(5), 'mine'), [10, sessionEnded('k')])).toEqual(['session-ended']);
  });

  it('[RES-FOLLOW] a request stream and a standalone stream of the same number are two', () => {
    expect(
      steps(
        startFollowing(r(5), 'mine'),
        [10, attached('k', r(5), 'mine')],
        [11, attached('k', s(5), 'x')],
        [12, closed('k', STANDALONE)],
        [13, closed('k', s(5))],
      ),
    ).toEqual(['live', 'skip', 'skip', 'skip']);
  });
});

describe('following a standalone stream', () => {
  it('[RES-FOLLOW] a new stream is live at its own attachment and delivers standalone messages only', () => {
    expect(
      steps(
        startFollowing(s(20), 'mine'),
        [20, attached('k', STANDALONE, 'mine')],
        [21, sent('k', STANDALONE, '{}')],
        [22, sent('k', r(3), '{}')],
        [23, sent('k', STANDALONE, '{}', { end: true })],
      ),
    ).toEqual(['live', 'deliver', 'skip', 'deliver']);
  });

  it('[RES-NEWEST] a newer plain attachment finishes it, whoever made it; older ones do not', () => {
    expect(
      steps(
        startFollowing(s(20), 'mine'),
        [10, attached('k', STANDALONE, 'older')],
        [11, sent('k', STANDALONE, '{}')],
        [20, attached('k', STANDALONE, 'mine')],
        [30, attached('k', STANDALONE, 'newer')],
      ),
    ).toEqual(['skip', 'deliver', 'live', 'finish']);
  });

  it('[RES-NEWEST] a resume passes the attachment that opened the stream and is live at its own', () => {
    expect(
      steps(
        startFollowing(s(20), 'mine'),
        [20, attached('k', STANDALONE, 'first')],
        [21, attached('k', s(20), 'second')],
        [22, sent('k', STANDALONE, '{}')],
        [23, attached('k', s(20), 'mine')],
        [24, attached('k', s(20), 'newer')],
      ),
    ).toEqual(['skip', 'skip', 'deliver', 'live', 'superseded']);
  });

  it('[RES-NEWEST] a resume of a stream that a newer plain attachment ended finishes there, before its own attachment', () => {
    expect(
      steps(
        startFollowing(s(20), 'mine'),
        [21, sent('k', STANDALONE, '{}')],
        [22, attached('k', STANDALONE, 'newer')],
        [23, sent('k', STANDALONE, '{}')],
        [24, attached('k', s(20), 'mine')],
      ),
    ).toEqual(['deliver', 'finish']);
  });

  it('[RES-NEWEST] attachments to another standalone stream do not concern it', () => {
    expect(
      steps(startFollowing(s(20), 'mine'), [20, attached('k', STANDALONE, 'mine')], [21, attached('k', s(10), 'late')]),
    ).toEqual(['live', 'skip']);
  });

  it('[RES-FOLLOW] a wish to close names the standalone stream in force or one by its label', () => {
    const start = startFollowing(s(20), 'mine');
    const own: Placed = [20, attached('k', STANDALONE, 'mine')];
    expect(steps(start, own, [21, closed('k', STANDALONE)])).toEqual(['live', 'close']);
    expect(steps(start, own, [21, closed('k', s(20))])).toEqual(['live', 'close']);
    expect(steps(start, own, [21, closed('k', s(19))])).toEqual(['live', 'skip']);
    expect(steps(start, [10, closed('k', STANDALONE)], own)).toEqual(['skip', 'live']);
  });
});

describe('where a standalone stream begins', () => {
  const A = (offset: number): Placed => [offset, attached('k', STANDALONE, `a${offset}`)];
  const M = (offset: number): Placed => [offset, sent('k', STANDALONE, '{}')];
  const rows: readonly (readonly [what: string, history: readonly Placed[], atStart: boolean])[] = [
    ['nothing before', [], true],
    ['messages, no attachment', [M(1), M(2)], true],
    ['an attachment, no message', [A(1)], true],
    ['messages only after the only attachment', [A(1), M(2)], true],
    ['messages only after the newest of two attachments', [A(1), A(2), M(3)], true],
    ['a message before the newest attachment', [M(1), A(2)], false],
    ['a message between two attachments', [A(1), M(2), A(3)], false],
    ['messages on both sides of the newest attachment', [M(1), A(2), M(3)], false],
    ['messages of requests do not count', [[1, sent('k', r(1), '{}')], A(2)], true],
    ['resumes are no attachments of their own', [A(1), M(2), [3, attached('k', s(1), 'x')]], true],
  ];
  it.each(rows)('[RES-BEGIN] %s', (_what, history, atStart) => {
    const folded = history.reduce(
      (state, [offset, input]) => foldStandalone(state, eventAt(input, offset)),
      NO_STANDALONE_HISTORY,
    );
    expect(beginsAtSessionStart(folded)).toBe(atStart);
  });
});
