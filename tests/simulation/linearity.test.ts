import { describe, expect, it } from 'vitest';
import { breaksOfOrder, breaksOfPrefix, missingAppends } from './src/linearity.ts';
import type { AckedAppend, Delivery } from './src/linearity.ts';

const append = (who: string, position: number, sentMs: number, ackedMs: number, log = 'inbound/0'): AckedAppend => ({
  log,
  position,
  sentMs,
  ackedMs,
  who,
});
const delivery = (who: string, ...items: (readonly [seq: number, offset: number, text: string])[]): Delivery => ({
  stream: 'r5',
  who,
  items: items.map(([seq, offset, text]) => ({ seq, offset, text })),
});

describe('acknowledged appends', () => {
  it('[SIM-LINEAR] may stand in any order as long as they overlap in time', () => {
    expect(breaksOfOrder([append('a', 4, 0, 10), append('b', 3, 5, 12), append('c', 5, 9, 11)])).toEqual([]);
  });

  it('[SIM-LINEAR] stand behind everything that was acknowledged before they were sent', () => {
    const said = breaksOfOrder([append('a', 7, 0, 10), append('b', 6, 11, 20)]);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain('b was sent after a was acknowledged');
  });

  it('[SIM-LINEAR] are held against the first that was acknowledged of all behind them, not only the next one', () => {
    const said = breaksOfOrder([append('a', 1, 50, 60), append('b', 2, 40, 90), append('c', 3, 0, 10)]);
    expect(said).toHaveLength(2);
  });

  it('[SIM-LINEAR] have a position each', () => {
    expect(breaksOfOrder([append('a', 3, 0, 10), append('b', 3, 5, 12)])).toHaveLength(1);
  });

  it('[SIM-LINEAR] of two partitions or epochs have nothing to do with each other', () => {
    expect(breaksOfOrder([append('a', 7, 0, 10), append('b', 6, 11, 20, 'inbound/1')])).toEqual([]);
  });

  it('[SIM-LINEAR] are in the log as often as they were acknowledged', () => {
    expect(missingAppends(['x', 'y'], ['y', 'x', 'z'])).toEqual([]);
    expect(missingAppends(['x', 'x'], ['x'])).toEqual(['x']);
    expect(missingAppends(['x'], [])).toEqual(['x']);
  });
});

describe('deliveries of a stream', () => {
  it('[SIM-LINEAR] are pieces of one sequence', () => {
    const whole = delivery('a', [1, 6, 'x'], [2, 9, 'y'], [3, 12, 'z']);
    expect(breaksOfPrefix([whole, delivery('b', [2, 9, 'y'], [3, 12, 'z']), delivery('c', [1, 6, 'x'])])).toEqual([]);
  });

  it('[SIM-LINEAR] have no hole, repeat nothing and do not go back', () => {
    expect(breaksOfPrefix([delivery('a', [1, 6, 'x'], [3, 12, 'z'])])).toHaveLength(1);
    expect(breaksOfPrefix([delivery('a', [1, 6, 'x'], [1, 6, 'x'])])).toHaveLength(1);
    expect(breaksOfPrefix([delivery('a', [2, 9, 'y'], [1, 6, 'x'])])).toHaveLength(1);
  });

  it('[SIM-LINEAR] give the same message under the same number', () => {
    expect(breaksOfPrefix([delivery('a', [1, 6, 'x']), delivery('b', [1, 6, 'other'])])).toHaveLength(1);
    expect(breaksOfPrefix([delivery('a', [1, 6, 'x']), delivery('b', [1, 7, 'x'])])).toHaveLength(1);
  });

  it('[SIM-LINEAR] stand in the log in the order of their numbers, whoever got them', () => {
    expect(breaksOfPrefix([delivery('a', [1, 9, 'x']), delivery('b', [2, 6, 'y'])])).toHaveLength(1);
  });
});
