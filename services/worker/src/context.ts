/** What the parts of the worker share. */
import type { Clock, Log, Random } from '@throughline/log';
import type { Meta } from '@throughline/tail';
import type { Logger, Metrics } from '@throughline/telemetry';
import type { WorkerConfig } from './config.ts';
import type { McpHost } from './host/host.ts';
import type { ToolCatalog } from './consume/tool-catalog.ts';

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
  readonly catalogs: ReadonlyMap<string, ToolCatalog>;
  /** Places for running requests and for hosted instances, over all partitions. */
  readonly load: WorkerLoad;
}

/** Counts over all partitions of this worker. */
export class WorkerLoad {
  running = 0;
  sessions = 0;
  readonly sessionsByServer = new Map<string, number>();
  /** Called when a running request has left its place. */
  readonly onFree = new Set<() => void>();

  free(): void {
    this.running--;
    for (const wake of this.onFree) wake();
  }

  addSession(server: string, by: 1 | -1): void {
    this.sessions += by;
    this.sessionsByServer.set(server, (this.sessionsByServer.get(server) ?? 0) + by);
  }
}
