import { createHash } from 'node:crypto';
import { LogError } from '@throughline/log';
import { encodeText, signSessionId } from '@throughline/protocol';
import type { SessionId } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EPOCH, keyOf, OTHER_EPOCH, result } from './testing/backend.ts';
import { call, createRig, OTHER_SECRET, SECRET } from './testing/core-rig.ts';
import type { Peer, Rig } from './testing/core-rig.ts';
import { lastIdOf } from './testing/sse-reading.ts';

let rig: Rig;
let peer: Peer;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway({ servers: ['demo', 'other'] });
});
afterEach(() => rig.stop());

const digest = (token: string): string => createHash('sha256').update(token).digest('hex');
const sign = (id: Partial<SessionId>, secret = SECRET, principal = 'anonymous', server = 'demo'): string =>
  signSessionId(
    { epoch: EPOCH, partition: 0, from: 0, createdMs: Date.UTC(2026, 0, 1), key: 'AAAAAAAAAAAAAAAAAAAAAA', ...id },
    { principal, server },
    secret,
  );
const statusOf = async (session: string, at = peer): Promise<number> => (await at.post(session, call(1))).sink.status;

describe('session ids', () => {
  it('[GW-SESSION] one signed here for this principal and server is served with no look-up', async () => {
    expect(await statusOf(sign({}))).toBe(200);
  });

  it.each([
    ['signed with another secret', () => sign({}, OTHER_SECRET)],
    ['of another principal', () => sign({}, SECRET, 'mallory')],
    ['of another server', () => sign({}, SECRET, 'anonymous', 'other')],
    ['of a former epoch', () => sign({ epoch: OTHER_EPOCH })],
    ['with a changed character', () => sign({}).replace('AAAA', 'AAAB')],
    ['cut off', () => sign({}).slice(0, -1)],
    ['with a space behind', () => `${sign({})} `],
    ['given twice', () => `${sign({})}, ${sign({})}`],
    ['huge', () => 'x'.repeat(15_000)],
    ['of many dots', () => '.'.repeat(15_000)],
    ['of other letters', () => 'ÿþ\u0080.0.0.0.a.b'],
  ])('[GW-SESSION] one %s is 404', async (_what, make) => {
    expect(await statusOf(make())).toBe(404);
    expect((await peer.get(make())).sink.status).toBe(404);
    expect((await peer.send('DELETE', null, { session: make() })).sink.status).toBe(404);
    expect(await rig.backend.inbound()).toEqual([]);
  });

  it('[GW-SESSION] past its maximum life it is 404, to the millisecond', async () => {
    const brief = await rig.gateway({ maxLifeMs: 5000 });
    const session = sign({});
    await rig.time.advance(5000);
    expect(await statusOf(session, brief)).toBe(200);
    await rig.time.advance(1);
    expect(await statusOf(session, brief)).toBe(404);
  });

  it('[GW-GROWN] of a partition that this gateway does not know it is not denied: 503, others may serve it', async () => {
    expect(await statusOf(sign({ partition: 1 }))).toBe(503);
  });

  it('[GW-GROWN] of a partition that was added it is served by gateways that run, as soon as they know which of its sessions have ended', async () => {
    rig.backend.log.controls.addPartitions(2);
    await rig.backend.log.describe();
    await rig.backend.startWorker();
    const living = sign({ partition: 1 });
    const ended = sign({ partition: 1, key: 'BBBBBBBBBBBBBBBBBBBBBA' });
    await rig.backend.endSession(ended);
    expect([await statusOf(living), await statusOf(ended), await statusOf(sign({}))]).toEqual([200, 404, 200]);
  });

  it('[GW-GROWN] new sessions begin on partitions that were added, once they have an owner', async () => {
    const before = await rig.open(peer);
    rig.backend.log.controls.addPartitions(3);
    await rig.time.advance(1);
    const partitions = async (): Promise<number[]> => {
      const seen = new Set<number>();
      for (let count = 0; count < 24; count++) seen.add(keyOf(await rig.open(peer)).partition);
      return [...seen].sort();
    };
    expect(await partitions()).toEqual([0]);
    await rig.backend.startWorker();
    await rig.time.settle();
    expect(await partitions()).toEqual([0, 1, 2]);
    expect(await statusOf(before)).toBe(200);
  });

  it('[GW-GROWN] while the sessions of an added partition cannot be read its sessions are 503, and others are served', async () => {
    const clock = rig.time.clock();
    let isDown = true;
    const flaky = await rig.gateway({ appendTimeoutMs: 1000 }, (log) => ({
      ...log,
      async bounds(of) {
        if (isDown && of.topic === 'sessions' && of.partition === 1) {
          await new Promise<void>((resolve) => clock.setTimer(10, resolve));
          throw new LogError('LOG_UNAVAILABLE', 'no answer');
        }
        return log.bounds(of);
      },
    }));
    rig.backend.log.controls.addPartitions(2);
    await rig.backend.log.describe();
    await rig.backend.startWorker();
    const added = await flaky.post(sign({ partition: 1 }), call(1));
    expect(await statusOf(sign({}), flaky)).toBe(200);
    await rig.time.advance(1000);
    expect(added.sink.status).toBe(503);
    isDown = false;
    await rig.time.advance(1000);
    expect(await statusOf(sign({ partition: 1 }), flaky)).toBe(200);
  });

  it('[GW-SESSION] the first secret signs and every secret verifies, so that secrets can be rotated', async () => {
    const rotated = await rig.gateway({ secrets: [OTHER_SECRET, SECRET] });
    expect(await statusOf(sign({}), rotated)).toBe(200);
    const session = await rig.open(rotated);
    expect(session).toBe(sign(keyOf(session), OTHER_SECRET));
    expect(await statusOf(session)).toBe(404);
  });

  it('[GW-AUTH] a session belongs to the principal of its token, also if a token is renewed', async () => {
    const tokens = [
      { principal: 'alice', sha256: digest('a1') },
      { principal: 'alice', sha256: digest('a2') },
      { principal: 'bob', sha256: digest('b') },
    ];
    const guarded = await rig.gateway({ tokens });
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    const session = await rig.open(guarded, '2025-11-25', as('a1'));
    expect((await guarded.post(session, call(1), as('a2'))).sink.status).toBe(200);
    expect((await guarded.post(session, call(1), as('b'))).sink.status).toBe(404);
    const stream = await guarded.get(session, undefined, as('a1'));
    expect((await guarded.get(session, lastIdOf(stream.sink.text), as('b'))).sink.status).toBe(404);
  });

  it('[GW-SESSION] a session whose end is known is 404, though its id is good', async () => {
    const session = await rig.open(peer);
    await rig.backend.endSession(session);
    await rig.time.settle();
    expect(await statusOf(session)).toBe(404);
    expect((await peer.get(session)).sink.status).toBe(404);
  });

  it('[GW-ENDED] a gateway is started only when it knows the sessions that ended, however slow the log', async () => {
    const session = await rig.open(peer);
    await rig.backend.endSession(session);
    const clock = rig.time.clock();
    const late = await rig.gateway({}, (log) => ({
      ...log,
      async read(from, position, options) {
        if (from.topic === 'sessions') await new Promise<void>((resolve) => clock.setTimer(1000, resolve));
        return log.read(from, position, options);
      },
    }));
    expect(await statusOf(session, late)).toBe(404);
  });

  it('[GW-ENDED] a gateway whose log does not answer gives up its start after 30 s', async () => {
    const mute = rig.gateway({}, (log) => ({
      ...log,
      bounds: (of) => (of.topic === 'sessions' ? new Promise(() => undefined) : log.bounds(of)),
    }));
    await expect(mute).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect(rig.time.nowMs()).toBe(30_000);
  });
});

describe('MCP-Protocol-Version', () => {
  const versioned = (session: string, version: string | undefined) =>
    peer.post(session, call(1), { headers: { 'mcp-protocol-version': version } });

  it('[GW-VERSION] the negotiated one is right, and none is right as well', async () => {
    const session = await rig.open(peer, '2025-06-18');
    expect((await versioned(session, '2025-06-18')).sink.status).toBe(200);
    expect((await versioned(session, undefined)).sink.status).toBe(200);
  });

  it.each([
    ['', 'VERSION_UNSUPPORTED', -32000],
    ['1.0', 'VERSION_UNSUPPORTED', -32000],
    ['2025-06-18 ', 'VERSION_UNSUPPORTED', -32000],
    ['x'.repeat(15_000), 'VERSION_UNSUPPORTED', -32000],
    ['2025\u00ff', 'VERSION_UNSUPPORTED', -32000],
    ['2026-07-28', 'ERA_UNSUPPORTED', -32022],
    ['2031-01-01', 'ERA_UNSUPPORTED', -32022],
  ])(
    '[GW-VERSION] %j is refused for each method, with what is supported and what was asked for',
    async (version, code, jsonRpc) => {
      const session = await rig.open(peer, '2025-06-18');
      const headers = { 'mcp-protocol-version': version };
      for (const exchange of [
        await peer.post(session, call(1), { headers }),
        await peer.get(session, undefined, { headers }),
        await peer.send('DELETE', null, { session, headers }),
      ]) {
        expect(exchange.sink.status).toBe(400);
        expect(exchange.sink.text.length).toBeLessThan(600);
        expect(exchange.json()).toMatchObject({
          error: {
            code: jsonRpc,
            data: {
              code,
              supported: ['2025-03-26', '2025-06-18', '2025-11-25'],
              requested: version.slice(0, 32),
            },
          },
        });
      }
    },
  );

  it('[GW-VERSION] a supported one that was not negotiated changes nothing: what was negotiated counts', async () => {
    const session = await rig.open(peer, '2025-06-18');
    const exchange = await versioned(session, '2025-11-25');
    expect(exchange.sink.status).toBe(200);
    expect(exchange.sink.text).toBe('');
    expect((await rig.backend.inbound()).at(-1)?.body).toMatchObject({ version: '2025-06-18' });
  });

  it.each(['2024-11-05', '2024-10-07'])(
    '[GW-VERSION] [MCP-V3] %s, which is not served, is right where client and server agreed on it, and else refused',
    async (version) => {
      const headers = { 'mcp-protocol-version': version };
      const other = await rig.open(peer, '2025-06-18');
      for (const exchange of [
        await peer.post(other, call(1), { headers }),
        await peer.get(other, undefined, { headers }),
        await peer.send('DELETE', null, { session: other, headers }),
      ])
        expect([exchange.sink.status, exchange.json()]).toMatchObject([
          400,
          { error: { data: { code: 'VERSION_UNSUPPORTED' } } },
        ]);
      const agreed = await rig.open(peer, version);
      const exchange = await versioned(agreed, version);
      // As one of 2025-03-26: nothing comes before the answer.
      expect([exchange.sink.status, exchange.sink.text]).toEqual([200, '']);
      expect((await versioned(agreed, '2024-01-01')).sink.status).toBe(400);
      // This gateway does not know what was agreed.
      expect((await versioned(sign({}), version)).sink.status).toBe(200);
    },
  );

  it('[GW-VERSION] where nothing was told and nothing is known it is 2025-03-26', async () => {
    const session = sign({});
    const exchange = await versioned(session, undefined);
    expect(exchange.sink.text).toBe('');
    expect((await rig.backend.inbound()).at(-1)?.body).toMatchObject({ version: '2025-03-26' });
  });

  it('[GW-VERSION] what was negotiated counts, with or without the header', async () => {
    const session = await rig.open(peer, '2025-11-25');
    const exchange = await versioned(session, undefined);
    expect(exchange.blocks()[0]?.data).toBe('');
    expect((await rig.backend.inbound()).at(-1)?.body).toMatchObject({ version: '2025-11-25' });
  });
});

describe('another epoch', () => {
  it('[GW-EPOCH] open calls are told in-band, and the sessions of the former one are over everywhere', async () => {
    const session = await rig.open(peer);
    const open = await peer.post(session, call('c'));
    const answered = await peer.post(session, call('d'));
    await rig.backend.say(session, { kind: 'request', at: 2 }, result('d'), { end: true });
    const standalone = await peer.get(session);
    await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
    await rig.time.run(open.done);
    await rig.time.run(standalone.done);
    expect(JSON.parse(open.messages()[0]!.data)).toMatchObject({
      id: 'c',
      error: { data: { reason: 'epoch-mismatch', action: 'reinitialize', available: { epoch: OTHER_EPOCH } } },
    });
    expect(answered.messages()).toHaveLength(1);
    expect(await statusOf(session)).toBe(404);
    expect((await peer.get(session)).sink.status).toBe(404);
    expect((await peer.get(session, lastIdOf(standalone.sink.text))).sink.status).toBe(404);
  });

  it('[GW-EPOCH] a call that waits where nobody told it is told when it resumes', async () => {
    const session = await rig.open(peer);
    const open = await peer.post(session, call('c'));
    const id = lastIdOf(open.sink.text);
    open.abort();
    await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
    await rig.time.settle();
    const resumed = await peer.get(session, id);
    expect(resumed.sink.status).toBe(200);
    const [message] = resumed.messages();
    expect(JSON.parse(message!.data)).toMatchObject({ id: 'c', error: { data: { reason: 'epoch-mismatch' } } });
    expect((await peer.get(session, message!.id)).sink.status).toBe(204);
  });

  it('[GW-EPOCH] a candidate that does not follow the epoch in force changes nothing', async () => {
    const session = await rig.open(peer);
    const open = await peer.post(session, call('c'));
    await rig.backend.rotateEpoch('cccccccccc', OTHER_EPOCH);
    await rig.time.settle();
    expect(open.sink.isEnded).toBe(false);
    expect(await statusOf(session)).toBe(200);
  });

  it('[GW-EPOCH] new sessions carry the new epoch and their calls work', async () => {
    await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
    await rig.backend.heartbeat({ epoch: OTHER_EPOCH, partitions: [0], beat: 2 });
    await rig.time.settle();
    const exchange = await peer.send('POST', call(0, 'initialize', { protocolVersion: '2025-11-25' }));
    expect(exchange.sink.status).toBe(200);
    expect(keyOf(exchange.sink.headers['Mcp-Session-Id']!).epoch).toBe(OTHER_EPOCH);
    expect(encodeText(exchange.sink.headers['X-MCP-Replay-Epoch']!)).toEqual(encodeText(OTHER_EPOCH));
  });
});

describe('an epoch that changes while a session is made', () => {
  it('[GW-EPOCH] the session is refused with 503, and nothing of it is appended', async () => {
    const hold: (() => void)[] = [];
    let isHeld = false;
    const slow = await rig.gateway({}, (log) => ({
      ...log,
      async bounds(of) {
        if (of.topic === 'meta' && isHeld) await new Promise<void>((resolve) => hold.push(resolve));
        return log.bounds(of);
      },
    }));
    await rig.backend.heartbeat({ partitions: [], beat: 2 });
    await rig.time.settle();
    isHeld = true;
    const exchange = await slow.send('POST', call(0, 'initialize', { protocolVersion: '2025-11-25' }));
    expect(exchange.sink.status).toBe(0);
    await rig.backend.heartbeat({ partitions: [0], beat: 3 });
    await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
    for (const go of hold) go();
    await rig.time.run(exchange.done);
    expect(exchange.sink.status).toBe(503);
    expect(await rig.backend.inbound()).toEqual([]);
  });
});
