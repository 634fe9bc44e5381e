import type { ConnectionOptions } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { KafkaRole } from './acls.ts';
import { oauthBearer } from './oauth-bearer.ts';

export type KafkaSasl =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      readonly username: string;
      readonly password: string;
    }
  | {
      readonly mechanism: 'oauthbearer';
      /**
       * Called for every connection and whenever the broker wants to see a token again: keep a token for as long as
       * it is valid. What it rejects with is shown to operators.
       */
      token(): Promise<string>;
    };

/** What the driver tells; levels as in a logger. Never contains records or secrets. */
export interface KafkaLogEvent {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
}

/** How to reach a cluster. */
export interface KafkaClientOptions {
  /** `host:port`, at least one; the others of the cluster are found through it. */
  readonly brokers: readonly string[];
  /** `client.id` of every request: quotas and broker logs go by it. One a role, so that a quota can be set for it. */
  readonly clientId: string;
  /** TLS: `true`, or options of `tls.connect` (ca, cert, key, servername …). Default: none. */
  readonly ssl?: boolean | ConnectionOptions;
  /** Default: none. */
  readonly sasl?: KafkaSasl;
  readonly clock: Clock;
  onLog?(event: KafkaLogEvent): void;
}

export interface KafkaLogOptions extends KafkaClientOptions {
  /**
   * What this process does with the log: the rights for it are looked at when the log is opened. `serve` is both gateway
   * and worker. Default: none, so that a missing right shows when it is needed.
   */
  readonly roles?: readonly KafkaRole[];
  /** Topics are `<prefix>.inbound` and so on, groups `<prefix>.<group>`. Default `throughline`. */
  readonly prefix?: string;
  /** Said as `description.retentionMs` if the settings of the topics may not be read. Default 24 h. */
  readonly retentionMs?: number;
  /** Milliseconds until an append that the cluster does not take is given up as unknown, or as refused if it was never sent. Default 15,000. */
  readonly appendTimeoutMs?: number;
  /** Milliseconds that a read tries again while the cluster does not answer, before `LOG_UNAVAILABLE`. Default 5000. */
  readonly readTimeoutMs?: number;
  /** Bytes of appends that may wait for their acks; more are refused. Default 128 MiB. */
  readonly maxQueuedBytes?: number;
  /** Milliseconds after which a silent member of a group loses its partitions. Default 8000; brokers take 6000 and more unless `group.min.session.timeout.ms` is lower. */
  readonly sessionTimeoutMs?: number;
}

/** Host and port of each broker. Throws `TypeError` on what is no address. */
export function parseBrokers(brokers: readonly string[]): { readonly host: string; readonly port: number }[] {
  if (brokers.length === 0) throw new TypeError('brokers: name at least one, as host:port');
  return brokers.map((text) => {
    const { host = '', port = '' } = /^(?<host>\[[0-9a-f:]+\]|[^:[\]\s]+):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {};
    if (host === '' || Number(port) < 1 || Number(port) > 65_535)
      throw new TypeError(`brokers: "${text}" is not host:port`);
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  });
}

/** What kafkajs takes; a new object, since it keeps its authenticator in it. */
export function toKafkajsSasl(sasl: KafkaSasl | undefined): object | null {
  if (sasl === undefined) return null;
  if (sasl.mechanism !== 'oauthbearer') return { ...sasl };
  return { mechanism: sasl.mechanism, authenticationProvider: oauthBearer(() => sasl.token()) };
}

export function toTlsOptions(ssl: boolean | ConnectionOptions | undefined): ConnectionOptions | null {
  if (ssl === undefined || ssl === false) return null;
  return ssl === true ? {} : ssl;
}
