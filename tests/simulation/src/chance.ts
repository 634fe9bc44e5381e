/** Chance of one actor: its own sequence, so that what one actor draws does not change what another one draws. */
import { createSeededRandom } from '@throughline/testkit';
import type { SeededRandom } from '@throughline/testkit';

export interface Chance extends SeededRandom {
  /** Uniform in [`from`, `to`). */
  between(from: number, to: number): number;
  whole(from: number, to: number): number;
  happens(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  weighted<T extends string>(weights: Readonly<Partial<Record<T, number>>>): T;
}

export function createChance(seed: number, actor: string): Chance {
  // A seed of one digit would cancel that digit in the name: 1 to 9 were one run.
  let mixed = 0x811c9dc5 ^ (seed < 10 ? 1 : seed);
  for (const letter of `${seed}/${actor}`) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  const random = createSeededRandom(mixed);
  const chance: Chance = {
    ...random,
    between: (from, to) => from + random.unit() * (to - from),
    whole: (from, to) => from + random.below(to - from + 1),
    happens: (probability) => random.unit() < probability,
    pick(items) {
      if (items.length === 0) throw new RangeError('nothing to pick from');
      return items[random.below(items.length)]!;
    },
    weighted(weights) {
      const entries = Object.entries(weights) as [never, number][];
      let left = random.unit() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) if ((left -= weight) < 0) return name;
      return entries.at(-1)![0];
    },
  };
  return chance;
}
