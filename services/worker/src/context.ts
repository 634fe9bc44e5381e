/** What the parts of the worker share. */
import type { Clock, Log, Random } from '@throughline/log';
import type { HistoryGuard, Meta, ReadOutages } from '@throughline/tail';
import type { Logger, Metrics } from '@throughline/telemetry';
import type { WorkerConfig } from './config.ts';
import type { McpHost } from './host/host.ts';
import type { ToolCatalog } from './consume/tool-catalog.ts';
import type { InstanceSeats } from './instance-seats.ts';
import type { RunningPlaces } from './running-places.ts';
import type { WaitingShares } from './settle/waiting-shares.ts';

export interface WorkerDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The hosts of the configured servers, by name. */
  readonly hosts: ReadonlyMap<string, McpHost>;
}

export interface WorkerContext extends WorkerDeps {
  readonly config: WorkerConfig;
  readonly worker: string;
  readonly meta: Meta;
  readonly guard: HistoryGuard;
  readonly outages: ReadOutages;
  readonly catalogs: ReadonlyMap<string, ToolCatalog>;
  /** Bounds over all partitions of this worker. */
  readonly places: RunningPlaces;
  readonly seats: InstanceSeats;
  readonly shares: WaitingShares;
}
