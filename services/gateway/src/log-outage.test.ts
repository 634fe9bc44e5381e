import { LogError } from '@throughline/log';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createRig } from './testing/core-rig.ts';
import type { Rig } from './testing/core-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
});
afterEach(() => rig.stop());

it('[TAIL-OUTAGE] a gateway whose log is away for a minute logs a line a partition when it fails, and one when it answers again', async () => {
  let isAway = false;
  const peer = await rig.gateway({ keepAliveMs: 15_000 }, (log) => ({
    ...log,
    async read(from, position, options) {
      if (isAway) throw new LogError('LOG_UNAVAILABLE', 'no broker answers');
      const batch = await log.read(from, position, options);
      // An outage ends what was waiting.
      if (isAway) throw new LogError('LOG_UNAVAILABLE', 'no broker answers');
      return batch;
    },
  }));
  const session = await rig.open(peer);
  const stream = await peer.get(session);
  isAway = true;
  await rig.time.advance(60_000);
  isAway = false;
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
