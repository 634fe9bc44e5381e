import { LogError } from '@throughline/log';
import type { Appended, Log } from '@throughline/log';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EPOCH, keyOf, OTHER_EPOCH, progress } from './testing/backend.ts';
import { call, createRig, initialize } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
});
afterEach(() => rig.stop());

/** A gateway whose appends to `topic` are acknowledged where `place` says. */
async function gatewayWith(topic: 'inbound' | 'events', place: (offset: number) => number): Promise<Peer> {
  return rig.gateway({}, (log): Log => ({
    ...log,
    async append(to, records): Promise<Appended> {
      const appended = await log.append(to, records);
      return to.topic === topic ? { ...appended, offsets: appended.offsets.map(place) } : appended;
    },
  }));
}

const epochs = async (): Promise<number> =>
  (await rig.backend.read('meta')).filter(({ key }) => new TextDecoder().decode(key ?? undefined).startsWith('epoch/'))
    .length;

describe('a compacted topic that is not what was read of it', () => {
  it('[GRD-VIEWS] a gateway is unready while `sessions` ends before what was read, and ready again when it does not', async () => {
    let isBehind = false;
    const peer = await rig.gateway({}, (log) => ({
      ...log,
      async read(from, position, options) {
        if (isBehind && from.topic === 'sessions' && (options?.waitMs ?? 0) > 0)
          throw new LogError('LOG_UNAVAILABLE', 'its leader changes');
        return await log.read(from, position, options);
      },
      async bounds(of) {
        const bounds = await log.bounds(of);
        return isBehind && of.topic === 'sessions' ? { start: 0, end: 0 } : bounds;
      },
    }));
    await rig.open(peer);
    isBehind = true;
    await rig.time.advance(3000);
    expect(peer.core.isReady()).toBe(false);
    isBehind = false;
    await rig.time.advance(2000);
    expect(peer.core.isReady()).toBe(true);
    expect(await epochs()).toBe(1);
  });
});

describe('an epoch that comes while a gateway starts', () => {
  it('[GW-EPOCH] is the one that it serves, though `sessions` was not read to its end before', async () => {
    await rig.open(await rig.gateway());
    let isRotated = false;
    // Long enough for `meta` to be read up to its end.
    const meanwhile = (): Promise<void> => new Promise((resolve) => rig.time.clock().setTimer(100, resolve));
    const peer = await rig.gateway({}, (log) => ({
      ...log,
      async read(from, position, options) {
        if (from.topic === 'sessions' && !isRotated) {
          isRotated = true;
          await meanwhile();
          await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
          await rig.backend.heartbeat({ epoch: OTHER_EPOCH, partitions: [0], beat: 2 });
          await meanwhile();
        }
        return await log.read(from, position, options);
      },
    }));
    const { status, headers } = (await peer.send('POST', initialize('2025-11-25'))).sink;
    expect(status).toBe(200);
    expect(keyOf(headers['Mcp-Session-Id'] ?? '').epoch).toBe(OTHER_EPOCH);
  });
});

describe('proof of a broken history', () => {
  it('[GW-BREAK] an ack at or below an earlier one makes a new epoch, and nothing is served before it is in force', async () => {
    let shift = 0;
    const peer = await gatewayWith('inbound', (offset) => offset - shift);
    const session = await rig.open(peer);
    expect((await peer.post(session, call(1))).sink.status).toBe(200);
    shift = 1;
    const broken = await peer.post(session, call(2));
    expect(broken.sink.status).toBe(503);
    expect(broken.sink.headers['Retry-After']).toBe('1');
    expect(broken.json()).toMatchObject({ id: 2, error: { data: { code: 'LOG_UNAVAILABLE' } } });
    await rig.time.settle();
    expect(await epochs()).toBe(2);
    expect((await peer.post(session, call(3))).sink.status).toBe(404);
    expect(rig.logs.filter(({ level }) => level === 'error')).toMatchObject([
      { fields: { topic: 'inbound', partition: 0, proof: 'acknowledged 1 at or below 1' } },
    ]);
  });

  it('[GW-BREAK] an attachment acknowledged at or below what was read is proof as well', async () => {
    const peer = await gatewayWith('events', () => 0);
    const session = await rig.open(peer);
    expect((await peer.get(session)).sink.status).toBe(503);
    await rig.time.settle();
    expect(await epochs()).toBe(2);
    expect(peer.core.isReady()).toBe(true);
  });

  it('[GW-BREAK] while the new epoch cannot be recorded every request is 503, streams stay open, and it is tried again', async () => {
    let isDeaf = true;
    let shift = 0;
    const peer = await rig.gateway({}, (log) => ({
      ...log,
      async append(to, records) {
        if (to.topic === 'meta' && isDeaf) rig.backend.log.controls.failAppends('refused');
        const appending = rig.backend.log.append(to, records);
        rig.backend.log.controls.failAppends(null);
        const appended = await appending;
        return to.topic === 'inbound'
          ? { ...appended, offsets: appended.offsets.map((offset) => offset - shift) }
          : appended;
      },
    }));
    const session = await rig.open(peer);
    const standalone = await peer.get(session);
    shift = 1;
    await peer.post(session, call(1));
    shift = 0;
    expect(peer.core.isReady()).toBe(false);
    for (const exchange of [
      await peer.post(session, call(2)),
      await peer.get(session),
      await peer.send('DELETE', null, { session }),
    ])
      expect(exchange.sink.status).toBe(503);
    await rig.time.advance(5000);
    expect(standalone.sink.isEnded).toBe(false);
    expect(await epochs()).toBe(1);
    isDeaf = false;
    await rig.time.advance(1000);
    expect(await epochs()).toBe(2);
    expect(peer.core.isReady()).toBe(true);
    expect(standalone.sink.isEnded).toBe(true);
    expect((await peer.post(session, call(3))).sink.status).toBe(404);
    await rig.time.advance(10_000);
    expect(await epochs()).toBe(2);
  });

  it('[GRD-AGAIN] a call that waits ends within a keepalive though `inbound` was made anew and nobody else appends or reads', async () => {
    const peer = await rig.gateway({ keepAliveMs: 15_000 });
    const session = await rig.open(peer);
    const waiting = await peer.post(session, call(1));
    rig.backend.log.controls.recreate('inbound');
    await rig.time.advance(20_000);
    expect(waiting.sink.isEnded).toBe(true);
    expect(await epochs()).toBe(2);
  });

  it('[GW-BREAK] appends that overtake each other prove nothing', async () => {
    const acks: (() => void)[] = [];
    const peer = await rig.gateway({}, (log) => ({
      ...log,
      async append(to, records) {
        const appended = await log.append(to, records);
        if (acks.length < 3 && to.topic === 'inbound') await new Promise<void>((resolve) => acks.push(resolve));
        return appended;
      },
    }));
    const opener = await rig.gateway();
    const session = await rig.open(opener);
    const posts = [
      await peer.post(session, call(1)),
      await peer.post(session, call(2)),
      await peer.post(session, call(3)),
    ];
    for (const ack of acks.toReversed()) {
      ack();
      await rig.time.settle();
    }
    expect(posts.map(({ sink }) => sink.status)).toEqual([200, 200, 200]);
    expect(await epochs()).toBe(1);
  });

  it('[GW-BREAK] what a gateway has not read or been told proves nothing: appends of others, cursors, views that lag', async () => {
    const first = await rig.gateway();
    const session = await rig.open(first);
    const second = await rig.gateway();
    for (let id = 0; id < 5; id++) {
      await first.post(session, call(`a${id}`));
      await second.post(session, call(`b${id}`));
      await first.get(session, 'aaaaaaaaaa.0.999999.r0~0.1.AAAAAAAAAAAAAAAAAAAAAA');
      await rig.backend.say(session, 's', progress(id));
    }
    expect(await epochs()).toBe(1);
    expect(keyOf(session).epoch).toBe('aaaaaaaaaa');
  });

  it('[GW-BREAK] offsets of a former history prove nothing about the new one', async () => {
    const peer = await rig.gateway();
    const session = await rig.open(peer);
    for (let id = 0; id < 5; id++) await peer.post(session, call(id));
    rig.backend.log.controls.recreate('inbound');
    await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
    await rig.backend.heartbeat({ epoch: OTHER_EPOCH, partitions: [0], beat: 2 });
    await rig.time.settle();
    expect((await peer.send('POST', initialize('2025-11-25'))).sink.status).toBe(200);
    expect(await epochs()).toBe(2);
  });

  it('[GW-BREAK] an ack that comes after the deadline is judged too', async () => {
    let ack = (): void => undefined;
    let isLate = false;
    const peer = await rig.gateway({ appendTimeoutMs: 1000 }, (log) => ({
      ...log,
      async append(to, records) {
        const appended = await log.append(to, records);
        if (!isLate || to.topic !== 'inbound') return appended;
        await new Promise<void>((resolve) => (ack = resolve));
        return { ...appended, offsets: [0] };
      },
    }));
    const session = await rig.open(peer);
    isLate = true;
    const exchange = await peer.post(session, call(1));
    await rig.time.advance(1000);
    expect(exchange.sink.status).toBe(504);
    expect(await epochs()).toBe(1);
    ack();
    await rig.time.settle();
    expect(await epochs()).toBe(2);
  });

  it('[GW-DOUBT] a log that ends before what was read: 503 with Retry-After and no refusal, until it is clear', async () => {
    const peer = await rig.gateway();
    const session = await rig.open(peer);
    const standalone = await peer.get(session);
    const { end } = await rig.backend.log.bounds({ topic: 'events', partition: 0 });
    rig.backend.log.controls.failAppends('refused');
    rig.backend.log.controls.truncate({ topic: 'events', partition: 0 }, end - 1);
    await rig.time.advance(1000);
    const cursor = 'aaaaaaaaaa.0.999999.r0~0.1.AAAAAAAAAAAAAAAAAAAAAA';
    for (const exchange of [await peer.get(session), await peer.post(session, call(7))]) {
      expect(exchange.sink.status).toBe(503);
      expect(exchange.sink.headers['Retry-After']).toBe('1');
    }
    expect((await peer.get(session, cursor)).sink.status).not.toBe(200);
    expect(standalone.sink.isEnded).toBe(false);
    expect(await epochs()).toBe(1);
    // The probe is acknowledged below what was read.
    rig.backend.log.controls.failAppends(null);
    await rig.time.advance(2000);
    expect(await epochs()).toBe(2);
    expect(standalone.sink.isEnded).toBe(true);
    expect((await peer.post(session, call(8))).sink.status).toBe(404);
  });
});
