/** What the parts of one tenure share. */
import type { Offset, Partition } from '@throughline/protocol';
import type { SessionDirectory } from '@throughline/tail';
import type { EventsWatch } from '../claim/events-watch.ts';
import type { StillOwner } from '../claim/still-owner.ts';
import type { WorkerContext } from '../context.ts';
import type { PartitionWriter } from '../settle/partition-writer.ts';
import type { Settler } from '../settle/settler.ts';
import type { DeadLetters } from './dead-letter.ts';
import type { SessionTable } from './session-table.ts';

export interface TenureParts {
  readonly context: WorkerContext;
  readonly partition: Partition;
  readonly claim: Offset;
  readonly watch: EventsWatch;
  readonly stillOwner: StillOwner;
  readonly directory: SessionDirectory;
  readonly writer: PartitionWriter;
  readonly settler: Settler;
  readonly sessions: SessionTable;
  readonly deadLetters: DeadLetters;
  /** Fires when the tenure is over: lost, or closed. */
  readonly over: AbortSignal;
  /** The partition is to be left: nothing new is started. */
  isLeaving(): boolean;
  /** What runs is cut short: nothing is dispatched any more, whatever was awaited. */
  isHalted(): boolean;
  /** Something happened that the newest checkpoint does not say. */
  touch(): void;
  /** Something that was waited for may have happened. */
  wake(): void;
}

/** Whether the record that this owner wrote at `at` was read back under its own claim. `false` too if the tenure is over. */
export async function isAccepted({ watch, claim, over }: TenureParts, at: Offset): Promise<boolean> {
  return (await watch.reached(at + 1, over)) && watch.claims().inForceAt(at) === claim;
}

export function drop({ context }: TenureParts, reason: string): void {
  context.metrics.add('throughline_worker_dropped_total', 1, { reason });
}

/** How an inbound record is met. */
export type Phase = Live | TakeoverPhase;

interface Live {
  readonly kind: 'live';
}

/** It lay there before the claim. */
export interface TakeoverPhase {
  readonly kind: 'takeover';
  /** The newest checkpoint says that it was taken in, and nothing of it is open. */
  readonly isPast: boolean;
  /** A former owner had taken in everything of `inbound` below. */
  readonly takenIn: Offset;
  /** Offsets of the newest cancels, by session and request. */
  readonly cancels: ReadonlyMap<string, Offset>;
  /** Offsets of the first answers to questions of former owners' servers, by {@link answerKey}. */
  readonly answers: ReadonlyMap<string, Offset>;
  /** What happened to requests is known from this position of `events` on; `null`: all of it is known. */
  readonly knownFrom: Offset | null;
  /** Retention took requests of the last minute: what is left may repeat one of them, which may have run. */
  readonly mayRepeat: boolean;
  /** When the newest record came that lay there before the claim, by the clock of the log: the own one may be wrong. */
  readonly newestMs: number;
}

export const LIVE: Phase = { kind: 'live' };

/** Map key of an answer. */
export function answerKey(session: string, id: string): string {
  return `${session}\n${id}`;
}

/** Map key of a cancel. */
export function cancelKey(session: string, id: string): string {
  return `${session}\n${id}`;
}
