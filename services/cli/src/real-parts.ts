/** The shipped parts. */
import { startAdmin, startGateway } from '@throughline/gateway';
import { systemClock, systemRandom } from '@throughline/log';
import { startWorker } from '@throughline/worker';
import { createHost, probeServer } from '@throughline/worker/host';
import { openLog } from './open-log.ts';
import type { Parts } from './start-role.ts';

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
  startAdmin,
  startGateway,
  startWorker,
};
