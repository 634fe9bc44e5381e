/** Requests that no worker served while the log held them. */
import { LogError } from '@throughline/log';
import { EVENT_TYPE, formatCheckpoint, makeRecord } from '@throughline/protocol';
import type { LostRequests, StreamLabel } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progress, result } from './testing/backend.ts';
import { call, createRig, dataOf } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig } from './testing/core-rig.ts';
import { lastIdOf } from './testing/sse-reading.ts';

let rig: Rig;
let peer: Peer;
let session: string;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway({ keepAliveMs: 15_000 });
  session = await rig.open(peer);
});
afterEach(() => rig.stop());

const newestRequest = async (): Promise<number> => (await rig.backend.inbound()).at(-1)?.offset ?? -1;
const eventsEnd = async (): Promise<number> => (await rig.backend.log.bounds({ topic: 'events', partition: 0 })).end;

async function checkpoint(...lost: readonly LostRequests[]): Promise<void> {
  const [owner = 0] = rig.backend.claims;
  const value = formatCheckpoint({ claims: [owner], inbound: 99, from: 99, open: [], lost });
  await rig.backend.events(0, makeRecord(EVENT_TYPE.checkpoint, null, value, { owner: String(owner) }));
  await rig.time.settle();
}

const isOver = async (exchange: Exchange): Promise<boolean> => {
  await rig.time.settle();
  return exchange.sink.isEnded;
};
const LOST = { error: { data: { code: 'OWNER_LOST', mayHaveRun: true } } };

describe('a call that is lost', () => {
  it('[GW-LOST] ends in-band within a keepalive, under an id whose resume gets 204', async () => {
    const exchange = await peer.post(session, call(7));
    const at = await newestRequest();
    await checkpoint({ from: at, to: at + 1, since: await eventsEnd() });
    await rig.time.advance(15_000);
    expect(await isOver(exchange)).toBe(true);
    expect(dataOf(exchange)).toMatchObject([{ jsonrpc: '2.0', id: 7, ...LOST }]);
    const after = await peer.get(session, lastIdOf(exchange.sink.text));
    expect(after.sink.status).toBe(204);
    // The session goes on.
    expect((await peer.post(session, call(8))).sink.status).toBe(200);
  });

  it('[GW-LOST, REQ-LOST] ends within a keepalive though the next checkpoint no longer says that it is lost', async () => {
    const exchange = await peer.post(session, call(7));
    const at = await newestRequest();
    await checkpoint({ from: at, to: at + 1, since: await eventsEnd() });
    await checkpoint();
    await rig.time.advance(15_000);
    expect(await isOver(exchange)).toBe(true);
    expect(dataOf(exchange)).toMatchObject([{ jsonrpc: '2.0', id: 7, ...LOST }]);
  });

  it('[GW-LOST] is told at once to a client that resumes it later, on any gateway, behind all that was said before', async () => {
    const exchange = await peer.post(session, call(7));
    const at = await newestRequest();
    const primed = lastIdOf(exchange.sink.text);
    exchange.abort();
    const stream = { kind: 'request', at } as const;
    const steps = Array.from({ length: 400 }, (_, step) => step);
    for (const step of steps) await rig.backend.say(session, stream, progress(step));
    // What others said lies between.
    for (let count = 0; count < 5; count++) await checkpoint();
    await checkpoint({ from: at, to: at + 1, since: await eventsEnd() });
    for (const gateway of [peer, await rig.gateway()]) {
      const resumed = await gateway.get(session, primed);
      expect(resumed.sink.status).toBe(200);
      expect(await isOver(resumed)).toBe(true);
      expect(dataOf(resumed)).toMatchObject([
        ...steps.map((step) => ({ params: { progress: step } })),
        { id: 7, ...LOST },
      ]);
    }
  });

  it('[GW-LOST] is none if its answer lies in the log, nor is another one', async () => {
    const answered = await peer.post(session, call(7));
    const at = await newestRequest();
    const primed = lastIdOf(answered.sink.text);
    answered.abort();
    await rig.backend.say(session, { kind: 'request', at }, result(7, { yes: 1 }), { end: true });
    await checkpoint({ from: at, to: at + 1, since: await eventsEnd() });
    const resumed = await peer.get(session, primed);
    expect(await isOver(resumed)).toBe(true);
    expect(dataOf(resumed)).toMatchObject([{ id: 7, result: { yes: 1 } }]);
    const other = await peer.post(session, call(8));
    await rig.time.advance(60_000);
    expect(await isOver(other)).toBe(false);
    expect(dataOf(other)).toEqual([]);
  });

  it('[GW-LOST] is lost only if an accepted checkpoint says so', async () => {
    const exchange = await peer.post(session, call(7));
    const at = await newestRequest();
    const lost = [{ from: at, to: at + 1, since: 0 }];
    const value = formatCheckpoint({ claims: [], inbound: 99, from: 99, open: [], lost });
    await rig.backend.events(0, makeRecord(EVENT_TYPE.checkpoint, null, value, { owner: '99' }));
    await rig.time.advance(60_000);
    expect(await isOver(exchange)).toBe(false);
  });

  it('[GW-LOST] a batch ends when all that still waits in it is lost', async () => {
    const old = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(old, [call(1), call(2), call(3)], {
      headers: { 'mcp-protocol-version': '2025-03-26' },
    });
    const first = (await newestRequest()) - 2;
    await checkpoint({ from: first + 1, to: first + 3, since: 0 });
    await rig.time.advance(15_000);
    expect(await isOver(exchange)).toBe(false);
    await rig.backend.say(old, { kind: 'request', at: first }, result(1), { answers: first });
    await rig.time.advance(15_000);
    expect(await isOver(exchange)).toBe(true);
    const data = exchange.blocks().flatMap((block) => (block.data ? [JSON.parse(block.data) as unknown] : []));
    expect(data).toMatchObject([
      { id: 1, result: {} },
      { id: 2, ...LOST },
      { id: 3, ...LOST },
    ]);
  });
});

describe('a batch of which retention took the first members', () => {
  const headers = { 'mcp-protocol-version': '2025-03-26' };
  const allDataOf = (exchange: Exchange): unknown[] =>
    exchange.blocks().flatMap((block) => (block.data ? [JSON.parse(block.data) as unknown] : []));
  const evictInbound = (before: number): void => {
    rig.backend.log.controls.evictBefore({ topic: 'inbound', partition: 0 }, before);
  };

  /** Two requests of which the first is lost, and the cursor of a client that was cut off before that. */
  async function beheaded(): Promise<{ old: string; at: number; stream: StreamLabel; cursor: string }> {
    const old = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(old, [call(1), call(2)], { headers });
    const at = await newestRequest();
    const stream = { kind: 'request', at: at - 1 } as const;
    await rig.backend.say(old, stream, progress(1));
    await rig.time.settle();
    const cursor = lastIdOf(exchange.sink.text);
    exchange.abort();
    evictInbound(at);
    await checkpoint({ from: at - 1, to: at, since: await eventsEnd() });
    return { old, at, stream, cursor };
  }

  it('[GW-BATCH-IDS] each member names the ids of all, unless they are too long', async () => {
    const old = await rig.open(peer, '2025-03-26');
    const names = [{ jsonrpc: '2.0', method: 'notifications/x' }, call('a'), call(2)];
    await peer.post(old, names, { headers });
    const members = (await rig.backend.inbound()).slice(-3);
    for (const { body } of members) expect(body).toMatchObject({ batch: { count: 3, ids: [null, 'a', 2] } });
    await peer.post(old, [call('x'.repeat(1100)), call(3)], { headers });
    for (const { body } of (await rig.backend.inbound()).slice(-2)) {
      expect(body).toMatchObject({ batch: { count: 2 } });
      expect(body).not.toHaveProperty('batch.ids');
    }
  });

  it('[GW-LOST-BATCH] tells the connection that posted it when the stream ends, though the owner knew no ids', async () => {
    const old = await rig.open(peer, '2025-03-26');
    const exchange = await peer.post(old, [call(1), call(2), call(3)], { headers });
    const at = (await newestRequest()) - 2;
    await rig.backend.say(old, { kind: 'request', at }, result(2), { answers: at + 1 });
    await rig.backend.say(old, { kind: 'request', at }, result(3), { answers: at + 2, end: true });
    expect(await isOver(exchange)).toBe(true);
    expect(allDataOf(exchange)).toMatchObject([
      { id: 2, result: {} },
      { id: 3, result: {} },
      { id: 1, ...LOST },
    ]);
  });

  it('[GW-LOST-BATCH] a connection that resumes it waits for the others, and is told of them if they are lost as well', async () => {
    const { old, at, stream, cursor } = await beheaded();
    const resumed = await (await rig.gateway({ keepAliveMs: 15_000 })).get(old, cursor, { headers });
    await rig.time.advance(60_000);
    expect(await isOver(resumed)).toBe(false);
    await rig.backend.say(old, stream, result(1), { answers: at - 1 });
    await checkpoint({ from: at - 1, to: at + 1, since: await eventsEnd() });
    await rig.time.advance(15_000);
    expect(await isOver(resumed)).toBe(true);
    expect(allDataOf(resumed)).toMatchObject([
      { id: 1, result: {} },
      { id: 2, ...LOST },
    ]);
  });

  it('[GW-LOST-BATCH] a connection that could not read what waits does not take it all for lost', async () => {
    const { old, at, cursor } = await beheaded();
    let fails = true;
    const other = await rig.gateway({ keepAliveMs: 15_000 }, (log) => ({
      ...log,
      read: (from, position, options) =>
        fails && from.topic === 'inbound'
          ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'no answer'))
          : log.read(from, position, options),
    }));
    const resumed = await other.get(old, cursor, { headers });
    await rig.time.advance(60_000);
    expect(await isOver(resumed)).toBe(false);
    fails = false;
    await checkpoint({ from: at - 1, to: at + 1, since: await eventsEnd() });
    await rig.time.advance(30_000);
    expect(await isOver(resumed)).toBe(true);
    expect(allDataOf(resumed)).toMatchObject([{ id: 2, ...LOST }]);
  });
});
