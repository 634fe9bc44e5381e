import { LogError } from '@throughline/log';
import { STANDALONE } from '@throughline/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { progress } from './testing/backend.ts';
import { call, createRig, dataOf } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
});
afterEach(() => rig.stop());

/** A gateway that can be cut off from its log: what waits is not answered, and what comes fails. */
async function cutOffAtWill(): Promise<{
  readonly peer: Peer;
  cut(isAway: boolean, topics?: readonly string[]): void;
}> {
  let away: (topic: string) => boolean = () => false;
  const refuse = (topic: string): void => {
    if (away(topic)) throw new LogError('LOG_UNAVAILABLE', 'no broker answers');
  };
  const peer = await rig.gateway({ keepAliveMs: 15_000 }, (log) => ({
    ...log,
    async read(from, position, options) {
      refuse(from.topic);
      const batch = await log.read(from, position, options);
      // An outage ends what was waiting.
      refuse(from.topic);
      return batch;
    },
  }));
  return {
    peer,
    cut(isAway, topics) {
      away = (topic) => isAway && topics?.includes(topic) !== false;
    },
  };
}

it('[GW-CUT-OFF] a gateway is not ready when its log has answered no read for 15 s, keeps its streams, and is ready with the first answer', async () => {
  const { peer, cut } = await cutOffAtWill();
  const session = await rig.open(peer);
  const stream = await peer.get(session);
  await rig.time.advance(120_000);
  // Nothing came, and every wait was answered.
  expect(peer.core.isReady()).toBe(true);
  cut(true);
  await rig.time.advance(9900);
  expect(peer.core.isReady()).toBe(true);
  await rig.time.advance(5200);
  expect(peer.core.isReady()).toBe(false);
  await rig.time.advance(60_000);
  expect([peer.core.isReady(), stream.sink.isEnded]).toEqual([false, false]);
  const post = await peer.post(session, call(1));
  cut(false);
  await rig.time.advance(10_000);
  expect(peer.core.isReady()).toBe(true);
  await rig.backend.say(session, STANDALONE, progress(1));
  await rig.time.advance(1000);
  expect([dataOf(stream), stream.sink.isEnded]).toEqual([[progress(1)], false]);
  expect([post.sink.status, post.sink.isEnded]).toEqual([200, false]);
});

it('[GW-CUT-OFF] a gateway whose log has no room stays ready: it refuses what would be written, and tells what is there', async () => {
  let isFull = false;
  const peer = await rig.gateway({ keepAliveMs: 15_000 }, (log) => ({
    ...log,
    append: (to, records) =>
      isFull
        ? Promise.reject(new LogError('APPEND_REFUSED', 'no space left', { reason: 'disk-full' }))
        : log.append(to, records),
  }));
  const session = await rig.open(peer);
  const stream = await peer.get(session);
  await rig.time.advance(1000);
  isFull = true;
  const refused = await peer.post(session, call(1));
  await rig.time.advance(120_000);
  expect([refused.sink.status, refused.sink.headers['Retry-After']]).toEqual([503, '1']);
  expect([peer.core.isReady(), stream.sink.isEnded]).toEqual([true, false]);
  await rig.backend.say(session, STANDALONE, progress(1));
  await rig.time.advance(1000);
  expect(dataOf(stream)).toEqual([progress(1)]);
});

it('[GW-CUT-OFF] a gateway of which some partitions do not answer stays ready', async () => {
  const { peer, cut } = await cutOffAtWill();
  cut(true, ['events', 'sessions']);
  await rig.time.advance(120_000);
  expect(peer.core.isReady()).toBe(true);
});

it('[TAIL-OUTAGE] a gateway whose log is away for a minute logs a line a partition when it fails, and one when it answers again', async () => {
  const { peer, cut } = await cutOffAtWill();
  const session = await rig.open(peer);
  const stream = await peer.get(session);
  cut(true);
  await rig.time.advance(60_000);
  cut(false);
  await rig.time.advance(10_000);
  const told = (event: string): unknown[] =>
    rig.logs.filter((line) => line.event === event).map(({ fields }) => fields);
  const places = [
    { topic: 'events', partition: 0 },
    { topic: 'meta', partition: 0 },
    { topic: 'sessions', partition: 0 },
  ];
  const byTopic = (fields: readonly unknown[]): unknown[] =>
    fields.toSorted((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)));
  expect(byTopic(told('log read failed; trying until it answers'))).toMatchObject(
    byTopic(places.map((place) => ({ ...place, code: 'LOG_UNAVAILABLE' }))),
  );
  const again = byTopic(told('the log answers again')) as { lastedMs: number }[];
  expect(again).toMatchObject(byTopic(places));
  for (const { lastedMs } of again) {
    expect(lastedMs).toBeGreaterThan(50_000);
    expect(lastedMs).toBeLessThan(66_000);
  }
  expect(stream.sink.isEnded).toBe(false);
});
