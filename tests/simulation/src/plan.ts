/**
 * What one seed means, as literals: how many processes and clients, how they are configured, what each client does and
 * which fault strikes when. The same plan gives the same run; taking a part out of it leaves the other parts what they are.
 */
import type { Latency } from './conditions.ts';

/** What one client does, drawn from the seed. */
export interface ClientHabits {
  readonly version: '2025-03-26' | '2025-06-18' | '2025-11-25';
  readonly servers: readonly string[];
  /** Milliseconds between two calls: uniform up to twice this. */
  readonly paceMs: number;
  readonly maxParallel: number;
  /** Chance that a call whose fate is unknown is posted again under the same id, instead of being given up. */
  readonly postAgain: number;
  readonly cancel: number;
  readonly deleteSession: number;
  /** Chance that a resume is doubled on another gateway, or made with an older cursor. */
  readonly oddResume: number;
  /** Chance that a call is replaced by a GET with a cursor that no server gave. */
  readonly forge: number;
  /** Chance that a connection is read only after a while. */
  readonly slowRead: number;
  readonly tools: Readonly<Record<string, number>>;
}

/** One thing that a client sets out to do. */
export type ClientStep = {
  /** Milliseconds from the client's start. */
  readonly atMs: number;
  /** Names the chance of this step: gateways, arguments, the times of what follows from it. */
  readonly draw: number;
} & (
  | { readonly do: 'call'; readonly tools: readonly string[]; readonly isCancelled: boolean }
  | { readonly do: 'delete' }
  | { readonly do: 'forge' }
);

export interface PlannedClient extends ClientHabits {
  /** In the order of time. */
  readonly steps: readonly ClientStep[];
}

/** One strike of a fault. */
export interface Strike {
  /** Milliseconds from when faults begin to strike. */
  readonly atMs: number;
  readonly fault: string;
  /** Names the chance of this strike: whom it hits, and how hard. */
  readonly draw: number;
}

/** A message that a process that is no server says to some session. */
export interface ProducerStep {
  /** Milliseconds from when clients come. */
  readonly atMs: number;
  /** Names the chance of this step: the session. */
  readonly draw: number;
  /** Few: most are said again. */
  readonly name: string;
}

export interface Plan {
  readonly seed: number;
  /** At the start. */
  readonly partitions: number;
  readonly gateways: number;
  readonly workers: number;
  readonly clients: readonly PlannedClient[];
  /** Milliseconds during which clients work and faults strike. */
  readonly activeMs: number;
  /** Mean milliseconds between two faults. */
  readonly faultEveryMs: number;
  /** Names of the table of faults: what may strike, and so explains what clients see. */
  readonly faults: readonly string[];
  /** Default: nobody says anything. */
  readonly says?: readonly ProducerStep[];
  /** In the order of time. */
  readonly strikes: readonly Strike[];
  readonly latency: Latency;
  readonly instanceFailure: number;
  /** Whether workers know their tools from the start, as after a probe. */
  readonly isProbed: boolean;
  readonly gateway: {
    readonly cacheBytes: number;
    readonly catchUpReaders: number;
    readonly keepAliveMs: number;
    readonly refreshMs: number;
    readonly drainMs: number;
  };
  readonly worker: {
    readonly checkpointMs: number;
    readonly drainMs: number;
    readonly maxRunning: number;
    readonly maxRunningPerSession: number;
    readonly unloadAfterMs: number;
  };
}
