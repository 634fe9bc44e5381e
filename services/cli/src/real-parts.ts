/** The shipped parts. The only place where a log driver is named. */
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { startGateway } from '@throughline/gateway';
import { systemClock, systemRandom } from '@throughline/log';
import type { Log } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { openSqliteLog } from '@throughline/log/sqlite';
import { startWorker } from '@throughline/worker';
import { createHost, probeServer } from '@throughline/worker/host';
import { StartError } from './faults.ts';
import type { LogSettings } from './settings.ts';
import type { Parts } from './start-role.ts';

/** Time without renewal after which a process that shares the log loses its partitions. */
const LEASE_MS = 3000;
/** A server that `npx` fetches first may take minutes to answer. */
const PROBE_MS = 180_000;

export const realParts: Parts = {
  clock: systemClock,
  random: systemRandom,
  openLog,
  createHost: (name, server, logger) =>
    createHost(server, { logger: logger.child({ server: name }), clock: systemClock, random: systemRandom }),
  async probe(host, signal) {
    return (await probeServer(host, { timeoutMs: PROBE_MS, clock: systemClock, signal })).tools;
  },
  startGateway,
  startWorker,
};

async function openLog(settings: LogSettings): Promise<Log> {
  const { location, retentionMs, maxBytes, partitions } = settings;
  if (location.kind === 'memory')
    return createMemoryLog({ clock: systemClock, partitions, retentionMs, maxBytes, leaseMs: LEASE_MS });
  const file = path.resolve(location.file);
  try {
    makeFolder(path.dirname(file));
  } catch (error) {
    throw new StartError(
      `The folder of the log, ${path.dirname(file)}, cannot be made. Choose another one with --log sqlite:<file>.`,
      error,
    );
  }
  return openSqliteLog({ file, partitions, retentionMs, maxBytes, leaseMs: LEASE_MS });
}

/** Like `mkdirSync` with `recursive`, which never returns on file systems that refuse folders with ENOENT (/proc). */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process that starts at the same time may have been first.
    if (!existsSync(folder)) throw error;
  }
}
