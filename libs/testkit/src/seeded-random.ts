/** Chance that repeats: the same seed gives the same run. */
import type { Random } from '@throughline/log';

export interface SeededRandom extends Random {
  /** Uniform whole number in [0, `below`). */
  below(below: number): number;
}

/** mulberry32. @param seed any whole number; only its low 32 bits count. */
export function createSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(unit() * limit);
  return { unit, below, bytes: (count) => Uint8Array.from({ length: count }, () => below(256)) };
}
