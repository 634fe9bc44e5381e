/** The whole configuration, typed: what the roles are started with. */
import type { GatewayConfig } from '@throughline/gateway/config';
import type { LogLevel } from '@throughline/telemetry/pino';
import type { WorkerConfig } from '@throughline/worker/config';
import type { AccessFile } from './access-files.ts';
import type { Layer } from './layers.ts';
import type { Address, LogLocation } from './parse-value.ts';
import type { ServerOrigin } from './server-settings.ts';

export interface LogSettings {
  readonly location: LogLocation;
  /** Nobody named it, so nobody mistyped it: its folder is made. */
  readonly isDefaultLocation: boolean;
  readonly retentionMs: number;
  readonly maxBytes: number;
  readonly partitions: number;
  /** Null: as the driver says. */
  readonly leaseMs: number | null;
  /** How long those who append wait for an ack. */
  readonly appendTimeoutMs: number;
  /** Where nobody set it, what a log holds is no broken promise. */
  readonly isRetentionSet: boolean;
  readonly kafka: KafkaSettings;
  readonly topics: TopicSettings;
}

/** How to reach the brokers; without meaning on another log. */
export interface KafkaSettings {
  readonly prefix: string;
  /** Null: no TLS. Texts in PEM. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | null;
  readonly login: KafkaLogin | null;
  /** Null: by role. */
  readonly clientId: string | null;
}

/** What `topics apply` was asked for; undefined: nobody asked, and a topic may have more than the default. */
export interface TopicSettings {
  readonly partitions: number | undefined;
  readonly replication: number | undefined;
  readonly retentionMs: number | undefined;
  readonly inboundRetentionMs: number | undefined;
  readonly maxMessageBytes: number | undefined;
}

export type KafkaLogin =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      readonly username: string;
      readonly password: string;
    }
  | { readonly mechanism: 'oauthbearer'; readonly source: TokenSource };

export type TokenSource =
  | { readonly kind: 'file'; readonly file: string }
  | {
      readonly kind: 'client-credentials';
      readonly url: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly scope: string | null;
    };

export interface Settings {
  readonly log: LogSettings;
  /** Null: the one that an embedded log keeps, or that {@link Settings.localSecretFile} names. */
  readonly secrets: readonly Uint8Array[] | null;
  /** Of tokens, keys and secrets: read again while a gateway runs. */
  readonly accessFiles: readonly AccessFile[];
  /** For a trial on a broker of this machine: made if it is not there. */
  readonly localSecretFile: string;
  readonly gateway: Omit<GatewayConfig, 'secrets'>;
  readonly worker: WorkerConfig;
  /** Of a process that is a worker alone; null: none. */
  readonly workerAdmin: Address | null;
  readonly serverOrigin: ServerOrigin;
  /** What the file says of authorization servers, with absolute paths; null: nothing. */
  readonly fileIssuers: readonly Record<string, unknown>[] | null;
  readonly logLevel: LogLevel;
  readonly jsonLogs: boolean;
  /** Logged at the start. */
  readonly warnings: readonly string[];
  /** Where each option came from, for `config print`. */
  readonly layer: Layer;
  /** As given or found; undefined: there is none. */
  readonly configFile: string | undefined;
}
