/** The whole configuration, typed: what the roles are started with. */
import type { GatewayConfig } from '@throughline/gateway/config';
import type { LogLevel } from '@throughline/telemetry/pino';
import type { WorkerConfig } from '@throughline/worker/config';
import type { Layer } from './layers.ts';
import type { LogLocation } from './parse-value.ts';
import type { ServerOrigin } from './server-settings.ts';

export interface LogSettings {
  readonly location: LogLocation;
  readonly retentionMs: number;
  readonly maxBytes: number;
  readonly partitions: number;
}

export interface Settings {
  readonly log: LogSettings;
  /** Null: the secret that the log itself keeps. */
  readonly secrets: readonly Uint8Array[] | null;
  readonly gateway: Omit<GatewayConfig, 'secrets'>;
  readonly worker: WorkerConfig;
  readonly serverOrigin: ServerOrigin;
  readonly logLevel: LogLevel;
  readonly jsonLogs: boolean;
  /** Logged at the start. */
  readonly warnings: readonly string[];
  /** Where each option came from, for `config print`. */
  readonly layer: Layer;
  /** As given or found; undefined: there is none. */
  readonly configFile: string | undefined;
}
