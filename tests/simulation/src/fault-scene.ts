/** What a fault can lay hands on, and what the table says of one. */
import type { Clock } from '@throughline/log';
import type { Chance } from './chance.ts';
import type { Network } from './network.ts';
import type { HistoryBreak } from './records-of-run.ts';
import type { GatewayNode, Node, WorkerNode, World } from './nodes.ts';

export interface FaultScene {
  readonly world: World;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly network: Network;
  readonly gateways: readonly GatewayNode[];
  readonly workers: readonly WorkerNode[];
  /** Reads what is about to be evicted into the archive of the run. */
  archive(): void;
  /** As `archive`, and begins another history of the partition at `at`. */
  breakAt(topic: HistoryBreak['topic'], partition: number, at: number, isTold: boolean): void;
  /** The epoch in force, by the archive. */
  epoch(): string | null;
}

export interface FaultRow {
  readonly what: string;
  /** What a run with this fault may show: `none`: clients notice nothing but reconnects. */
  readonly harm: 'none' | 'owner' | 'append' | 'history';
  /** Drawn apart from the others: the draws of a seed stay what they are without it. */
  readonly apart?: true;
  /** It breaks the history: drawn apart from the others, since every session ends by it. */
  readonly breaks?: true;
  /** Returns what it did, for the trace; `null` if there was nothing to strike. */
  strike(scene: FaultScene): string | null;
}

/** For a while half of what a condition concerns is struck. @param did for the trace. */
export function strikeHalf(
  condition: 'duplicatePost' | 'requestLoss' | 'readFailure',
  [least, most]: readonly [leastMs: number, mostMs: number],
  did: string,
): FaultRow['strike'] {
  return ({ world, chance, clock }) => {
    world.conditions[condition] = 0.5;
    clock.setTimer(chance.between(least, most), () => {
      world.conditions[condition] = 0;
    });
    return did;
  };
}

/** One of those that are at work, by chance. */
export function pickUp<T extends Node>(nodes: readonly T[], chance: Chance): T | null {
  const there = nodes.filter((node) => node.isUp() && node.process()?.isPaused() === false);
  return there.length === 0 ? null : chance.pick(there);
}
