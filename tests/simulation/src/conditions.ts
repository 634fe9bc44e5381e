/** What the faults have set for now: read by the simulated log and network at each operation. */
import type { PartitionRef } from '@throughline/log';
import type { Topic } from '@throughline/protocol';
import type { Chance } from './chance.ts';

/**
 * How an append ends.
 * - `refused`: nothing is stored, and the writer knows.
 * - `full`: the same, for want of room.
 * - `unknown-stored`, `unknown-lost`: the ack is lost; the record is there, or is not.
 * - `unknown-late`: the writer is told "unknown" first; the record comes into the log some time after.
 */
export type AppendFate = 'ok' | 'refused' | 'full' | 'unknown-stored' | 'unknown-lost' | 'unknown-late';

export interface Latency {
  /** Milliseconds from a call to its effect in the log, and from there to its completion: uniform up to this. */
  readonly logMs: number;
  /** Milliseconds one way between client and gateway: uniform up to this. */
  readonly networkMs: number;
}

export interface Conditions {
  readonly latency: Latency;
  readonly chance: Chance;
  /** Appends to a partition take effect at this time at the earliest. */
  readonly stalledUntil: Map<string, number>;
  /** Appends by a process are slower by up to so much. */
  readonly slowAppendMs: Map<string, number>;
  /** A process hears of what the log did by up to so much later, each time anew: out of order. */
  readonly slowCompletionMs: Map<string, number>;
  /** By process: its requests, or what the log says to it, or both, wait until then. */
  readonly cutOff: Map<string, { readonly untilMs: number; readonly way: 'out' | 'back' | 'both' }>;
  /** By topic: how often it was made anew. */
  readonly madeAnew: Map<Topic, number>;
  /** Chance of each fate of an append, while appends fail. */
  appendFates: Readonly<Partial<Record<AppendFate, number>>> | null;
  /** Chance that a read fails with `LOG_UNAVAILABLE`. */
  readFailure: number;
  /** Chance that a POST reaches a second gateway as well. */
  duplicatePost: number;
  /** Chance that a request gets lost on its way. */
  requestLoss: number;
}

export function refName({ topic, partition }: PartitionRef): string {
  return `${topic}/${partition}`;
}

export function createConditions(latency: Latency, chance: Chance): Conditions {
  return {
    latency,
    chance,
    stalledUntil: new Map(),
    slowAppendMs: new Map(),
    slowCompletionMs: new Map(),
    cutOff: new Map(),
    madeAnew: new Map(),
    appendFates: null,
    readFailure: 0,
    duplicatePost: 0,
    requestLoss: 0,
  };
}

/** Back to a world without faults. */
export function calm(conditions: Conditions): void {
  conditions.stalledUntil.clear();
  conditions.slowAppendMs.clear();
  conditions.slowCompletionMs.clear();
  conditions.cutOff.clear();
  conditions.appendFates = null;
  conditions.readFailure = 0;
  conditions.duplicatePost = 0;
  conditions.requestLoss = 0;
}
