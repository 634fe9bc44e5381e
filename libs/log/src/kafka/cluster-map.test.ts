import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { systemClock } from '../system.ts';
import { createClusterMap } from './cluster-map.ts';

/** A port that refuses connections. */
async function findDeadPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it('[KAFKA-LANES] of several requests to a broker that is gone each one is told so: none takes the throwing away of the connection for the end of the log', async () => {
  const brokers = [`127.0.0.1:${await findDeadPort()}`, `127.0.0.1:${await findDeadPort()}`];
  const map = createClusterMap({ brokers, clientId: 'test', clock: systemClock });
  const asked = await Promise.allSettled(['a', 'b', 'c', 'd'].map((topic) => map.leaderOf(topic, 0)));
  expect(asked).toMatchObject(asked.map(() => ({ status: 'rejected', reason: { kind: 'connection' } })));
  map.close();
  await expect(map.leaderOf('a', 0)).rejects.toMatchObject({ kind: 'closed' });
});
