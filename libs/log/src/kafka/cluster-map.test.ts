import { findFreePort } from '@throughline/testkit';
import { expect, it } from 'vitest';
import { systemClock } from '../system.ts';
import { createClusterMap } from './cluster-map.ts';
import { startFakeBroker } from './testing/fake-broker.ts';

it('[KAFKA-LANES] of several requests to a broker that is gone each one is told so: none takes the throwing away of the connection for the end of the log', async () => {
  const brokers = [`127.0.0.1:${await findFreePort()}`, `127.0.0.1:${await findFreePort()}`];
  const map = createClusterMap({ brokers, clientId: 'test', clock: systemClock });
  const asked = await Promise.allSettled(['a', 'b', 'c', 'd'].map((topic) => map.leaderOf(topic, 0)));
  expect(asked).toMatchObject(asked.map(() => ({ status: 'rejected', reason: { kind: 'connection' } })));
  map.close();
  await expect(map.leaderOf('a', 0)).rejects.toMatchObject({ kind: 'closed' });
});

it('[KAFKA-LEADER] a broker that is cut off from the cluster, and says what it said before, brings no former leader back; each topic asks every broker in turn', async () => {
  let movedMs = 0;
  const clock = { ...systemClock, monoMs: () => systemClock.monoMs() + movedMs };
  const ports: number[] = [];
  let isCutOff = false;
  await using stack = new AsyncDisposableStack();
  const brokers = [];
  for (const node of [0, 1, 2]) {
    const leader = () => (isCutOff && node !== 0 ? { node: 1, epoch: 6 } : { node: 0, epoch: 5 });
    const broker = stack.use(await startFakeBroker(() => ports, leader));
    brokers.push(broker);
    ports.push(broker.port);
  }
  const topics = ['a', 'b', 'c'];
  const map = createClusterMap({ brokers: ports.map((port) => `127.0.0.1:${port}`), clientId: 'test', clock });
  stack.defer(() => {
    map.close();
  });
  for (const topic of topics) expect((await map.leaderOf(topic, 0)).port).toBe(ports[0]);
  // Broker 0 is cut off, and another one leads.
  isCutOff = true;
  const leaders: number[][] = topics.map(() => []);
  for (let round = 0; round < 6; round++) {
    movedMs += 30_001;
    for (const [place, topic] of topics.entries())
      leaders[place]?.push(ports.indexOf((await map.leaderOf(topic, 0)).port));
  }
  for (const seen of leaders) {
    // Known after two rounds at the latest, and never forgotten.
    expect(seen.slice(1), String(leaders)).toEqual([1, 1, 1, 1, 1]);
  }
  for (const { asked } of brokers) expect([...new Set(asked)].sort()).toEqual(topics);
});
