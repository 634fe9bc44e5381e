import { checkpointed, aliased, eventAt, sent, sessionEnded, started, streamEnded } from '@throughline/testkit';
import { requestStream } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { SinceCheckpoint } from './since-checkpoint.ts';

describe('what a successor needs', () => {
  const r = requestStream;
  const folded = (): SinceCheckpoint => {
    const since = new SinceCheckpoint();
    since.fold(eventAt(started('k', r(1), 1, 0), 1));
    since.fold(eventAt(sent('k', r(2), '{}', { owner: 0, end: true }), 2));
    since.fold(eventAt(streamEnded('k', r(3), 0), 3));
    since.fold(eventAt(aliased('k', r(4), r(2), 0), 4));
    since.fold(eventAt(sessionEnded('gone', 0), 5));
    return since;
  };

  it('[WRK-TAKEOVER] is which requests were started, which streams ended, what repeats another, which sessions ended', () => {
    const since = folded();
    expect(since.ledger().get(1)).toMatchObject({ attempt: 1, ended: false });
    expect([1, 2, 3, 4].map((at) => since.hasEnded(at))).toEqual([false, true, true, false]);
    expect([2, 4].map((at) => since.isAlias(at))).toEqual([false, true]);
    expect([...since.endedSessions().keys()]).toEqual(['gone']);
    expect([since.checkpoint(), since.knownFrom()]).toEqual([null, 0]);
  });

  it('[WRK-CHECKPOINT] begins anew with a checkpoint, which names the ends that are not recorded yet', () => {
    const since = folded();
    since.fold(
      eventAt(checkpointed(0, { inbound: 9, open: [{ at: 8, attempt: 1, sent: true }], ending: ['late'] }), 6),
    );
    expect(since.ledger().get(1)).toBeUndefined();
    expect(since.ledger().get(8)).toEqual({ attempt: 1, sent: true, ended: false });
    expect([since.hasEnded(2), since.isAlias(4), [...since.endedSessions().keys()]]).toEqual([false, false, ['late']]);
    expect(since.checkpoint()?.inbound).toBe(9);
  });

  it('[WRK-TAKEOVER] knows nothing of before a gap', () => {
    const since = folded();
    since.restart(100);
    expect([since.knownFrom(), since.checkpoint(), since.ledger().get(1), since.hasEnded(2)]).toEqual([
      100,
      null,
      undefined,
      false,
    ]);
  });
});
