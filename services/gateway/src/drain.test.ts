import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progress, result } from './testing/backend.ts';
import { call, createRig, dataOf, initialize } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig } from './testing/core-rig.ts';
import { lastIdOf } from './testing/sse-reading.ts';

let rig: Rig;
let peer: Peer;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway({ drainMs: 10_000 });
});
afterEach(() => rig.stop());

/** Starts to drain; `isDone` tells whether it is over. */
function drain(): { isDone: boolean; readonly done: Promise<void> } {
  const state = {
    isDone: false,
    done: peer.core.drain().then(() => {
      state.isDone = true;
    }),
  };
  return state;
}

describe('drain', () => {
  it('[GW-DRAIN] it is unready at once, and over at once when there is nothing to wait for', async () => {
    expect(peer.core.isReady()).toBe(true);
    const draining = drain();
    expect(peer.core.isReady()).toBe(false);
    await rig.time.settle();
    expect(draining.isDone).toBe(true);
  });

  it('[GW-DRAIN] resumable streams close one after the other over the time set, each with a time to come back', async () => {
    const session = await rig.open(peer);
    const streams: Exchange[] = [];
    for (let id = 0; id < 50; id++) streams.push(await peer.post(session, call(id)));
    const draining = drain();
    const open: number[] = [];
    for (let second = 0; second < 10; second++) {
      open.push(streams.filter(({ sink }) => !sink.isEnded).length);
      await rig.time.advance(1000);
    }
    expect(open[0]).toBe(50);
    expect(open[2]).toBeLessThan(50);
    expect(open[2]).toBeGreaterThan(20);
    expect(open[4]).toBeLessThan(35);
    expect(open[9]).toBe(0);
    expect(draining.isDone).toBe(true);
    for (const stream of streams) expect(stream.blocks().at(-1)).toEqual({ retry: expect.any(Number) as number });
    const other = await rig.gateway();
    const resumed = await other.get(session, lastIdOf(streams[7]!.sink.text));
    await rig.backend.say(session, { kind: 'request', at: 8 }, result(7), { end: true });
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([result(7)]);
  });

  it('[GW-DRAIN] a stream that could not be resumed is kept to the end, closed as soon as it can be, and never silently', async () => {
    const old = await rig.open(peer, '2025-06-18');
    const [answered, told, silent] = [
      await peer.post(old, call('a')),
      await peer.post(old, call('b')),
      await peer.post(old, call('c')),
    ];
    const draining = drain();
    await rig.time.advance(9000);
    expect([answered, told, silent].map(({ sink }) => sink.isEnded)).toEqual([false, false, false]);
    await rig.backend.say(old, { kind: 'request', at: 1 }, result('a'), { end: true });
    await rig.backend.say(old, { kind: 'request', at: 2 }, progress(1));
    await rig.time.settle();
    expect([answered, told, silent].map(({ sink }) => sink.isEnded)).toEqual([true, true, false]);
    expect(dataOf(answered)).toEqual([result('a')]);
    expect(dataOf(told)).toEqual([progress(1)]);
    expect(draining.isDone).toBe(false);
    await rig.time.advance(1000);
    expect(silent.sink.isEnded).toBe(true);
    expect(dataOf(silent)).toMatchObject([
      { id: 'c', error: { data: { code: 'APPEND_UNKNOWN', retry: 'application', mayHaveRun: true } } },
    ]);
    await draining.done;
  });

  it('[GW-DRAIN] a new request of a client that can come back is taken, and its stream closes in what is left of the time', async () => {
    const session = await rig.open(peer);
    await peer.get(session);
    const draining = drain();
    await rig.time.advance(9000);
    const late = await peer.post(session, call('x'));
    expect(late.sink.status).toBe(200);
    await rig.time.advance(1000);
    expect(late.sink.isEnded).toBe(true);
    expect(late.blocks().map(({ id }) => id !== undefined)).toEqual([true, false]);
    expect(draining.isDone).toBe(true);
    const resumed = await (await rig.gateway()).get(session, lastIdOf(late.sink.text));
    await rig.backend.say(session, { kind: 'request', at: 1 }, result('x'), { end: true });
    await rig.time.run(resumed.done);
    expect(dataOf(resumed)).toEqual([result('x')]);
  });

  it('[GW-DRAIN] a new request of a client that could not come back is refused with 503 before anything is done', async () => {
    const old = await rig.open(peer, '2025-03-26');
    await peer.get(old);
    drain();
    const before = (await rig.backend.inbound()).length;
    for (const refused of [await peer.post(old, call('x')), await peer.send('POST', initialize('2025-06-18', 'x'))]) {
      expect(refused.sink.status).toBe(503);
      expect(refused.sink.headers['Retry-After']).toBe('1');
      expect(refused.json()).toMatchObject({ id: 'x', error: { data: { code: 'DRAINING', retry: 'after-backoff' } } });
    }
    expect((await rig.backend.inbound()).length).toBe(before);
    expect((await peer.post(old, { jsonrpc: '2.0', id: 's1', result: {} })).sink.status).toBe(202);
  });

  it('[GW-DRAIN] waits for answers that are on their way, though no stream is open', async () => {
    const session = await rig.open(peer);
    let ack = (): void => undefined;
    const slow = await rig.gateway({ drainMs: 5000 }, (log) => ({
      ...log,
      append: (to, records) =>
        to.topic === 'inbound'
          ? new Promise((resolve) => (ack = () => resolve(log.append(to, records))))
          : log.append(to, records),
    }));
    const exchange = await slow.post(session, { jsonrpc: '2.0', method: 'n' });
    let isDone = false;
    void slow.core.drain().then(() => (isDone = true));
    await rig.time.advance(1000);
    expect(isDone).toBe(false);
    ack();
    await rig.time.settle();
    expect(exchange.sink.status).toBe(202);
    expect(isDone).toBe(true);
  });

  it('[GW-DRAIN] a client that reads nothing does not hold it up', async () => {
    const session = await rig.open(peer);
    const stuck = await peer.get(session);
    stuck.sink.isBlocked = true;
    await rig.backend.say(session, 's', progress(1));
    const draining = drain();
    await rig.time.advance(10_000);
    expect(draining.isDone).toBe(true);
    expect(stuck.sink.isEnded).toBe(true);
  });

  it('[GW-DRAIN] what answers nothing at all is given up one second after the time set', async () => {
    const session = await rig.open(peer);
    const dead = await rig.gateway({ drainMs: 2000 }, (log) => ({
      ...log,
      append: (to, records) => (to.topic === 'inbound' ? new Promise(() => undefined) : log.append(to, records)),
    }));
    await dead.post(session, call(1));
    let isDone = false;
    void dead.core.drain().then(() => (isDone = true));
    await rig.time.advance(2999);
    expect(isDone).toBe(false);
    await rig.time.advance(1);
    expect(isDone).toBe(true);
  });

  it('[GW-DRAIN] stopped without a drain, open streams end and the core holds nothing', async () => {
    const session = await rig.open(peer);
    const streams = [await peer.post(session, call(1)), await peer.get(session)];
    await rig.time.run(peer.core.stop());
    await rig.time.run(Promise.all(streams.map(({ done }) => done)));
    expect(streams.every(({ sink }) => sink.isEnded)).toBe(true);
    expect(peer.core.exchanges()).toBe(0);
  });
});
