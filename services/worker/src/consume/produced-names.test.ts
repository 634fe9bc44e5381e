import { describe, expect, it } from 'vitest';
import { ProducedNames } from './produced-names.ts';

describe('names of messages of producers', () => {
  it('[PRD-NAMES] are known for a minute after the first message, by the clock of the log', () => {
    const names = new ProducedNames();
    expect(names.meet('a', 1000)).toBe(false);
    expect(names.meet('a', 61_000)).toBe(true);
    expect(names.meet('b', 61_000)).toBe(false);
    expect(names.meet('a', 61_000)).toBe(true);
    expect(names.meet('c', 61_001)).toBe(false);
    expect(names.meet('a', 61_001)).toBe(false);
  });

  it('[PRD-NAMES] are bounded: the oldest are forgotten', () => {
    const names = new ProducedNames(3);
    for (const name of ['a', 'b', 'c', 'd']) expect(names.meet(name, 5)).toBe(false);
    expect(['b', 'c', 'd'].map((name) => names.meet(name, 5))).toEqual([true, true, true]);
    expect(names.meet('a', 5)).toBe(false);
  });
});
