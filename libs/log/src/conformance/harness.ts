/** What a driver gives to the suite. Nothing here or in the cases may assume that offsets begin at 0 or have no holes. */
import type { Offset, Topic } from '@throughline/protocol';
import type { Clock } from '../clock.ts';
import type { Log, PartitionRef } from '../port.ts';

export type InjectedAppendFault = 'refused' | 'unknown-stored' | 'unknown-lost';

/** One log for one test, with at least 2 partitions. Cases that need what a harness does not offer are skipped. */
export interface LogHarness {
  readonly clock: Clock;
  /** One more handle on the log, as another process has it. */
  open(): Promise<Log>;
  /** Closes every handle and frees the rest. */
  dispose(): Promise<void>;
  /** How long a change of a group may take to be known by all members, in milliseconds. */
  readonly groupMs: number;
  /** Random histories that the model case runs. Default 25. */
  readonly modelRuns?: number;
  /** True if the log is there again when all handles were closed. */
  readonly isDurable: boolean;
  /** Evicts what lies before `offset`; resolves when every open handle sees it. */
  evict?(ref: PartitionRef, before: Offset): Promise<void>;
  /** Removes superseded records of all partitions. */
  compact?(topic: Topic): Promise<void>;
  /** The log has so many partitions from now on. */
  grow?(partitions: number): Promise<void>;
  /** How appends through this handle end from now on. */
  failAppends?(log: Log, fault: InjectedAppendFault | null): Promise<void>;
  /** The handle stops as in a killed process: nothing is left or said. */
  crash?(log: Log): Promise<void>;
}

/** Opened before each test, disposed after it. */
export interface Bench {
  readonly harness: LogHarness;
  /** The first handle. */
  readonly log: Log;
}

export type GetBench = () => Bench;
