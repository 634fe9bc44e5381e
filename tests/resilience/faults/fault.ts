/** What a fault is: something that happens to a world and ends. */
import { setTimeout as pause } from 'node:timers/promises';
import type { FaultWorld } from '../world/fault-world.ts';

/** What clients may be told of it, beside to try again; nothing else. `owner lost`: calls. `session over`: sessions. */
export type Told = 'owner lost' | 'session over';

export interface Run {
  readonly world: FaultWorld;
  /** Resolves after `ms`, or at once when nobody waits for the fault any more. */
  hold(ms: number): Promise<void>;
  /** Recovery is measured from here on; without it, from the end of `run`. Once. */
  over(): void;
}

export interface Fault {
  readonly name: string;
  /** A sentence for the table. */
  readonly does: string;
  /** Rightly, on every run of it or on some. */
  readonly mayTell: readonly Told[];
  /** Whether it can happen together with another one that has this too. */
  readonly isCombinable?: boolean;
  /** Why it cannot be had in this world; null if it can. */
  whyNot?(world: FaultWorld): string | null;
  /** Injects it and heals it. `world.heal` comes after it in any case. */
  run(run: Run): Promise<void>;
}

export function holdWith(signal: AbortSignal | undefined): Run['hold'] {
  return (ms) => pause(ms, undefined, signal === undefined ? {} : { signal });
}

/** One of them, by the world's seed. */
export function pick<T>(world: FaultWorld, items: readonly T[]): T {
  const found = items[world.random.below(items.length)];
  if (found === undefined) throw new RangeError('nothing to choose from');
  return found;
}
