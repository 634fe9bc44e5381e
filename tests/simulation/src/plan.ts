/** What one seed means: how many processes and clients, how they are configured, which faults strike. */
import type { Latency } from './conditions.ts';
import type { ClientHabits } from './sim-client.ts';

export interface Plan {
  readonly seed: number;
  readonly partitions: number;
  readonly gateways: number;
  readonly workers: number;
  readonly clients: readonly ClientHabits[];
  /** Milliseconds during which clients work and faults strike. */
  readonly activeMs: number;
  /** Mean milliseconds between two faults. */
  readonly faultEveryMs: number;
  /** Names of the table of faults. */
  readonly faults: readonly string[];
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
