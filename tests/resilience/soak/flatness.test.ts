import { describe, expect, it } from 'vitest';
import { findGrowth } from './flatness.ts';
import type { Sample } from './flatness.ts';

const BOUNDS = { heapBytes: 10, externalBytes: 10, rssBytes: 10, handles: 2, descriptors: 2 };
const sample = (value: number): Sample => ({
  heapBytes: value,
  externalBytes: 5,
  rssBytes: 5,
  handles: 5,
  descriptors: 5,
});
/** Up and down, as collections have it, over a floor that grows by `growth` a sample. */
const sawtooth = (growth: number): Sample[] =>
  Array.from({ length: 40 }, (_, index) => sample(1000 + index * growth + (index % 5) * 100));

describe('findGrowth', () => {
  it('[FLT-SOAK] a floor that grows is found under the ups and downs, a flat one is none', () => {
    expect(findGrowth('worker', sawtooth(0), BOUNDS)).toEqual([]);
    expect(findGrowth('worker', sawtooth(-3), BOUNDS)).toEqual([]);
    expect(findGrowth('worker', sawtooth(3), BOUNDS)).toEqual(['worker: heapBytes grew from 1045 to 1090']);
  });

  it('[FLT-SOAK] what a fault emptied and what fills again is no growth', () => {
    const emptied = Array.from({ length: 40 }, (_, index) => sample(index >= 18 && index < 28 ? 100 : 1000));
    expect(findGrowth('gateway', emptied, BOUNDS)).toEqual([]);
  });

  it('[FLT-SOAK] growth at the start is none, descriptors and handles count, and too few samples prove nothing', () => {
    const starts = Array.from({ length: 40 }, (_, index) => sample(Math.min(index, 10) * 100));
    expect(findGrowth('gateway', starts, BOUNDS)).toEqual([]);
    const leaks = Array.from({ length: 40 }, (_, index) => ({ ...sample(1), descriptors: index, handles: index }));
    expect(findGrowth('gateway', leaks, BOUNDS)).toEqual([
      'gateway: handles grew from 15 to 30',
      'gateway: descriptors grew from 15 to 30',
    ]);
    const large = [...sawtooth(0), { ...sample(1000), rssBytes: 11 }];
    expect(findGrowth('gateway', large, BOUNDS)).toEqual(['gateway: rssBytes was 11']);
    const buffers = Array.from({ length: 40 }, (_, index) => ({ ...sample(1), externalBytes: index * 2 }));
    expect(findGrowth('gateway', buffers, BOUNDS)).toEqual(['gateway: externalBytes grew from 30 to 60']);
    expect(findGrowth('gateway', [sample(1)], BOUNDS)).toEqual(['gateway: 1 samples are too few']);
  });
});
