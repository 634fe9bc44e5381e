/** Where the processes of a test keep their log: a file in their folder, or topics of their own on a cluster. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { systemClock } from '@throughline/log';
import type { Log } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import { openSqliteLog } from '@throughline/log/sqlite';
import type { ThroughlineRole } from './throughline-process.ts';

export interface LogPlace {
  /** Options of a process, the one in `place` (default 0) of its role. */
  args(role: ThroughlineRole, place?: number): readonly string[];
  /** A handle of the test itself, to look in. */
  open(): Promise<Log>;
}

export interface LogPlaceOptions {
  /** Milliseconds. Default: that of the product. */
  readonly retentionMs?: number;
}

/** Makes a place for processes that run in `folder`. */
export type MakeLogPlace = (folder: string, options: LogPlaceOptions) => Promise<LogPlace>;

/** A file of the embedded log. */
export const makeFilePlace: MakeLogPlace = (folder, { retentionMs }) => {
  const file = path.join(folder, 'log.db');
  const retention = retentionMs === undefined ? [] : ['--retention', `${retentionMs}ms`];
  return Promise.resolve({
    args: () => ['--log', `sqlite:${file}`, ...retention],
    open: () => openSqliteLog({ file, ...(retentionMs === undefined ? {} : { retentionMs }) }),
  });
};

export interface KafkaPlaceOptions {
  readonly brokers: readonly string[];
  /** Default 1. */
  readonly replication?: number;
  /** Default 4, as the embedded log. */
  readonly partitions?: number;
  /** Default: one of its own. */
  readonly prefix?: string;
  /** How a process reaches the brokers. Default: as `brokers` says. */
  brokersOf?(role: ThroughlineRole, place: number): readonly string[];
  /** Session timeout of the group. Default 3 s, as the lease of the embedded log; the broker must allow it. */
  readonly leaseMs?: number;
}

const SECRET_BYTES = 32;
let places = 0;

/** Topics of a new prefix. They stay: whoever runs the cluster removes it. */
export function makeKafkaPlace(kafka: KafkaPlaceOptions): MakeLogPlace {
  const { brokers, replication = 1, partitions = 4, leaseMs = 3000 } = kafka;
  const client = { brokers, clientId: 'throughline-test', clock: systemClock };
  return async (folder, { retentionMs }) => {
    const prefix = kafka.prefix ?? `e2e-${process.pid}-${Date.now().toString(36)}-${++places}`;
    const retention = retentionMs === undefined ? {} : { retentionMs };
    await applyTopics(client, { prefix, partitions, replication, ...retention });
    const secrets = path.join(folder, 'throughline.secrets');
    writeFileSync(secrets, `${randomBytes(SECRET_BYTES).toString('base64url')}\n`, { mode: 0o600 });
    return {
      args: (role, at = 0) => [
        ...['--log', `kafka://${(kafka.brokersOf?.(role, at) ?? brokers).join(',')}`, '--prefix', prefix],
        ...(role === 'gateway' ? [] : ['--lease', `${leaseMs}ms`]),
        ...(role === 'worker' ? [] : ['--secrets-file', secrets]),
      ],
      open: () => openKafkaLog({ ...client, prefix }),
    };
  };
}
