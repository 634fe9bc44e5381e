/** The only place where a log driver is named. */
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Log } from '@throughline/log';
import { systemClock } from '@throughline/log';
import { openKafkaLog } from '@throughline/log/kafka';
import type { KafkaClientOptions, KafkaRole, KafkaSasl } from '@throughline/log/kafka';
import { createMemoryLog } from '@throughline/log/memory';
import { openSqliteLog } from '@throughline/log/sqlite';
import type { Logger } from '@throughline/telemetry';
import { StartError } from './faults.ts';
import { fetchKafkaToken } from './fetch-kafka-token.ts';
import type { KafkaLogin, LogSettings } from './settings.ts';

export interface LogUser {
  /** Who speaks to the brokers: `client.id` is `throughline-<role>` unless it is set. */
  readonly role: string;
  readonly logger: Logger;
}

/**
 * What a cluster does not take is given up before those who wait for the ack give up: so they hear whether it was
 * certainly not stored, and whoever called is told to try again instead of that it may have run.
 */
const GIVE_UP_EARLIER = 0.75;
/** Time without renewal after which a process that shares the log loses its partitions. */
const EMBEDDED_LEASE_MS = 3000;

/** Errors: `LogError`; {@link StartError} if the folder of a log file is not there, or that of the default cannot be made. */
export async function openLog(settings: LogSettings, by: LogUser): Promise<Log> {
  const { location, retentionMs, maxBytes, partitions } = settings;
  if (location.kind === 'kafka')
    return await openKafkaLog({
      ...kafkaClient(settings, location.brokers, by),
      prefix: settings.kafka.prefix,
      roles: rolesOf(by.role),
      retentionMs,
      appendTimeoutMs: Math.floor(settings.appendTimeoutMs * GIVE_UP_EARLIER),
      ...(settings.leaseMs === null ? {} : { sessionTimeoutMs: settings.leaseMs }),
    });
  const leaseMs = settings.leaseMs ?? EMBEDDED_LEASE_MS;
  if (location.kind === 'memory')
    return createMemoryLog({ clock: systemClock, partitions, retentionMs, maxBytes, leaseMs });
  const file = path.resolve(location.file);
  prepareFolder(path.dirname(file), settings.isDefaultLocation);
  return openSqliteLog({ file, partitions, retentionMs, maxBytes, leaseMs });
}

/** Makes that of the default. Another one would be made for a slip of the keyboard, and a new log begin there in silence. */
function prepareFolder(folder: string, isDefault: boolean): void {
  if (existsSync(folder)) return;
  if (!isDefault)
    throw new StartError(
      `There is no folder ${folder} for the log. Create it, or name another file with --log sqlite:<file>.`,
    );
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process that starts at the same time may have been first.
    if (existsSync(folder)) return;
    throw new StartError(
      `The folder of the log, ${folder}, cannot be made. Choose another one with --log sqlite:<file>.`,
      error,
    );
  }
}

/** Whose rights are looked at when the log is opened. Whoever only looks at the log learns of a missing one when it is needed. */
function rolesOf(role: string): KafkaRole[] {
  switch (role) {
    case 'serve':
      return ['gateway', 'worker'];
    case 'gateway':
    case 'worker':
      return [role];
    default:
      return [];
  }
}

/** How to reach the cluster, for whatever speaks to it. */
export function kafkaClient(settings: LogSettings, brokers: readonly string[], by: LogUser): KafkaClientOptions {
  const { tls, login, clientId } = settings.kafka;
  return {
    brokers,
    clientId: clientId ?? `throughline-${by.role}`,
    clock: systemClock,
    ...(tls === null ? {} : { ssl: tls }),
    ...(login === null ? {} : { sasl: toSasl(login) }),
    onLog: ({ level, message, fields }) => {
      by.logger[level](`kafka: ${message}`, fields);
    },
  };
}

function toSasl(login: KafkaLogin): KafkaSasl {
  if (login.mechanism !== 'oauthbearer') return login;
  const { source } = login;
  return { mechanism: login.mechanism, token: () => fetchKafkaToken(source) };
}
