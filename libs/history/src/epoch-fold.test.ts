import type { Epoch, EpochRecord } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { foldEpoch, provesBreak } from './epoch-fold.ts';

const candidate = (token: string, previous: string | null, clusterId = 'here'): EpochRecord => ({
  token,
  previous,
  clusterId,
  reason: 'test',
  atMs: 5,
});
const foldAll = (candidates: readonly EpochRecord[]): Epoch | null =>
  candidates.reduce<Epoch | null>((current, next) => foldEpoch(current, next, 'here'), null);

describe('epoch', () => {
  it('[EPO-FIRST] of several first candidates the first in the log wins', () => {
    expect(foldAll([candidate('aaaaaaaaaa', null), candidate('bbbbbbbbbb', null)])).toBe('aaaaaaaaaa');
    expect(foldAll([candidate('bbbbbbbbbb', null), candidate('aaaaaaaaaa', null)])).toBe('bbbbbbbbbb');
    expect(foldAll([])).toBeNull();
  });

  it('[EPO-ROTATE] a rotation counts only if it names the epoch in force, so that of two at once one is void', () => {
    const rotated = [
      candidate('aaaaaaaaaa', null),
      candidate('bbbbbbbbbb', 'aaaaaaaaaa'),
      candidate('cccccccccc', 'aaaaaaaaaa'),
    ];
    expect(foldAll(rotated)).toBe('bbbbbbbbbb');
    expect(foldAll([...rotated, candidate('dddddddddd', 'cccccccccc')])).toBe('bbbbbbbbbb');
    expect(foldAll([...rotated, candidate('dddddddddd', 'bbbbbbbbbb')])).toBe('dddddddddd');
    expect(foldAll([candidate('bbbbbbbbbb', 'aaaaaaaaaa')])).toBeNull();
  });

  it('[EPO-CLUSTER] a candidate that was made on another cluster is void', () => {
    expect(foldAll([candidate('aaaaaaaaaa', null, 'elsewhere')])).toBeNull();
    expect(foldAll([candidate('aaaaaaaaaa', null), candidate('bbbbbbbbbb', 'aaaaaaaaaa', 'elsewhere')])).toBe(
      'aaaaaaaaaa',
    );
  });

  it('[EPO-PROOF] an acknowledged append proves a break only at or below what was acknowledged or read before', () => {
    expect(provesBreak(101, 100)).toBe(false);
    expect(provesBreak(100, 100)).toBe(true);
    expect(provesBreak(5, 100)).toBe(true);
    expect(provesBreak(0, -1)).toBe(false);
    expect(provesBreak(0, 0)).toBe(true);
  });
});
