import { checkpointed, claimed, eventAt, released, sent } from '@throughline/testkit';
import { requestStream } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { ClaimHistory } from './claims.ts';

const EPOCH = 'epochaaaaa';
const OTHER = 'epochbbbbb';
const STREAM = requestStream(7);
const message = (owner: number | null) => sent('k', STREAM, '{}', { owner });

function fold(history: ClaimHistory, ...records: (readonly [offset: number, input: ReturnType<typeof message>])[]) {
  return records.map(([offset, input]) => history.fold(eventAt(input, offset)));
}

describe('claims', () => {
  it('[CLM-FIRST] the first claim of an epoch counts only if it names no predecessor', () => {
    const history = new ClaimHistory(EPOCH);
    expect(fold(history, [0, claimed('a', EPOCH, 9)], [1, claimed('a', EPOCH, null)])).toEqual(['fenced', 'accepted']);
    expect(history.owner()).toEqual({ claim: 1, worker: 'a', released: false });
  });

  it('[CLM-ONE] of two claimants of the same place exactly one is valid, the first in the log', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(
      history,
      [0, claimed('a', EPOCH, null)],
      [1, claimed('b', EPOCH, 0)],
      [2, claimed('c', EPOCH, 0)],
      [3, claimed('d', EPOCH, null)],
    );
    expect(verdicts).toEqual(['accepted', 'accepted', 'fenced', 'fenced']);
    expect(history.list()).toEqual([0, 1]);
    expect(history.owner()?.worker).toBe('b');
  });

  it('[CLM-CHAIN] a claim that names a void claim as its predecessor is void', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(
      history,
      [0, claimed('a', EPOCH, null)],
      [1, claimed('b', EPOCH, null)],
      [2, claimed('b', EPOCH, 1)],
      [3, claimed('b', EPOCH, 0)],
    );
    expect(verdicts).toEqual(['accepted', 'fenced', 'fenced', 'accepted']);
  });

  it('[CLM-EPOCH] claims of another epoch are void, also when they name the claim in force', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(
      history,
      [0, claimed('old', OTHER, null)],
      [1, claimed('a', EPOCH, null)],
      [2, claimed('old', OTHER, 1)],
      [3, message(0)],
      [4, message(1)],
    );
    expect(verdicts).toEqual(['fenced', 'accepted', 'fenced', 'fenced', 'accepted']);
    expect(history.list()).toEqual([1]);
  });

  it('[CLM-FENCE] a record with an owner counts only if that equals the claim in force at its place', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(
      history,
      [0, message(0)],
      [1, claimed('a', EPOCH, null)],
      [2, message(1)],
      [3, claimed('b', EPOCH, 1)],
      [4, message(1)],
      [5, checkpointed(1)],
      [6, message(3)],
      // Larger than the claim in force is as wrong as smaller.
      [7, message(4)],
      [8, message(99)],
    );
    expect(verdicts).toEqual([
      'fenced',
      'accepted',
      'accepted',
      'accepted',
      'fenced',
      'fenced',
      'accepted',
      'fenced',
      'fenced',
    ]);
  });

  it('[CLM-FREE] a record without an owner counts always', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(history, [0, message(null)], [1, claimed('a', EPOCH, null)], [2, message(null)]);
    expect(verdicts).toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('[CLM-RELEASE] only the owner in force releases, and a new claim ends the release', () => {
    const history = new ClaimHistory(EPOCH);
    fold(history, [0, claimed('a', EPOCH, null)], [1, claimed('b', EPOCH, 0)], [2, released(0)]);
    expect(history.owner()?.released).toBe(false);
    fold(history, [3, released(1)]);
    expect(history.owner()).toEqual({ claim: 1, worker: 'b', released: true });
    fold(history, [4, claimed('c', EPOCH, 1)]);
    expect(history.owner()).toEqual({ claim: 4, worker: 'c', released: false });
  });

  it('[CLM-RELEASE] what the owner still writes after its release counts until the next claim', () => {
    const history = new ClaimHistory(EPOCH);
    const verdicts = fold(history, [0, claimed('a', EPOCH, null)], [1, released(0)], [2, message(0)]);
    expect(verdicts).toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('[CLM-AT] the claim in force at a place is the newest one at or before it', () => {
    const history = new ClaimHistory(EPOCH, [10, 20, 30], 'c');
    expect([0, 9, 10, 11, 19, 20, 29, 30, 31, 1000].map((offset) => history.inForceAt(offset))).toEqual([
      null,
      null,
      10,
      10,
      10,
      20,
      20,
      30,
      30,
      30,
    ]);
    expect(new ClaimHistory(EPOCH).inForceAt(5)).toBeNull();
  });

  it('[CLM-JUDGE] older records are judged by the claim in force at their own place, not by the newest', () => {
    const history = new ClaimHistory(EPOCH, [10, 20], 'b');
    const judged = (offset: number, owner: number | null) => history.judge(eventAt(message(owner), offset));
    expect(judged(15, 10)).toBe('accepted');
    expect(judged(15, 20)).toBe('fenced');
    expect(judged(25, 10)).toBe('fenced');
    expect(judged(25, 20)).toBe('accepted');
    expect(judged(5, null)).toBe('accepted');
    expect(history.judge(eventAt(claimed('b', EPOCH, 10), 20))).toBe('accepted');
    expect(history.judge(eventAt(claimed('z', EPOCH, 10), 21))).toBe('fenced');
    expect(history.list()).toEqual([10, 20]);
  });

  it('[CLM-LIST] a reader that starts with a claim list goes on as one that read all, and learns the worker of the newest', () => {
    const history = new ClaimHistory(EPOCH, [10, 20]);
    const verdicts = fold(
      history,
      [15, message(10)],
      [16, claimed('z', EPOCH, 10)],
      [20, claimed('b', EPOCH, 10)],
      [21, message(20)],
      [22, claimed('z', EPOCH, 10)],
      [23, claimed('c', EPOCH, 20)],
    );
    expect(verdicts).toEqual(['accepted', 'fenced', 'accepted', 'accepted', 'fenced', 'accepted']);
    expect(history.owner()).toEqual({ claim: 23, worker: 'c', released: false });
  });

  it('[CLM-LIST] a reader that starts before the newest claim of its list learns who made it, and takes no older release for its own', () => {
    const history = new ClaimHistory(EPOCH, [10, 20]);
    fold(history, [15, released(10)]);
    expect(history.owner()).toEqual({ claim: 20, worker: '', released: false });
    fold(history, [20, claimed('b', EPOCH, 10)]);
    expect(history.owner()).toEqual({ claim: 20, worker: 'b', released: false });
  });

  it('[CLM-TRIM] trimming keeps the claim in force at the new start and every later one', () => {
    const history = new ClaimHistory(EPOCH, [10, 20, 30], 'c');
    history.trim(5);
    expect(history.list()).toEqual([10, 20, 30]);
    history.trim(25);
    expect(history.list()).toEqual([20, 30]);
    history.trim(30);
    expect(history.list()).toEqual([30]);
    history.trim(1000);
    expect(history.list()).toEqual([30]);
    expect(fold(history, [1001, message(30)])).toEqual(['accepted']);
  });

  it('[CLM-FLOOR] after trimming, the place where verdicts begin is told, so that nothing is judged without its claim', () => {
    const history = new ClaimHistory(EPOCH);
    fold(history, [3, claimed('a', EPOCH, null)], [8, claimed('b', EPOCH, 3)]);
    expect(history.floor()).toBe(0);
    history.trim(5);
    expect(history.floor()).toBe(0);
    history.trim(9);
    expect(history.floor()).toBe(8);
    expect(new ClaimHistory(EPOCH, [40, 50], 'x').floor()).toBe(40);
  });
});
