/** One SSE connection: order, keepalive, cursor refresh, closes, newest attachment, what cannot be read, slow readers. */
import { sent, closed } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyOf, progress, result } from './testing/backend.ts';
import { call, createRig, dataOf } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig } from './testing/core-rig.ts';
import { cursorOf, lastIdOf } from './testing/sse-reading.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
let rig: Rig;
let peer: Peer;
let session: string;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
  peer = await rig.gateway({ keepAliveMs: 1000, refreshMs: 3500 });
  session = await rig.open(peer);
});
afterEach(() => rig.stop());

const idBlocks = (exchange: Exchange) => exchange.blocks().filter(({ id }) => id !== undefined);
const attachments = async (): Promise<number> =>
  (await rig.backend.read('events')).filter(({ headers }) =>
    headers.some(([name, value]) => name === 'type' && new TextDecoder().decode(value) === 'stream.attached'),
  ).length;

describe('listening', () => {
  it('[GW-LISTEN] a standalone stream is named by its attachment and carries what names no call', async () => {
    const exchange = await peer.get(session);
    const attachedAt = (await rig.backend.log.bounds(EVENTS)).end - 1;
    await rig.backend.say(session, 's', progress(1));
    await rig.backend.say(session, { kind: 'request', at: 0 }, progress(9));
    await rig.time.settle();
    expect(dataOf(exchange)).toEqual([progress(1)]);
    expect(exchange.messages()[0]?.cursor).toMatchObject({ stream: { kind: 'standalone', at: attachedAt }, seq: 1 });
  });

  it('[GW-LISTEN] the first standalone stream has what the server said before it', async () => {
    await rig.backend.say(session, 's', progress(1));
    await rig.backend.say(session, 's', progress(2));
    const exchange = await peer.get(session);
    await rig.backend.say(session, 's', progress(3));
    await rig.time.settle();
    expect(dataOf(exchange)).toEqual([progress(1), progress(2), progress(3)]);
    expect(exchange.messages().map(({ cursor }) => cursor.seq)).toEqual([1, 2, 3]);
  });

  it('[GW-LISTEN] a later one has it too if no message lies before the newest earlier one, on any gateway', async () => {
    const first = await peer.get(session);
    first.abort();
    await rig.backend.say(session, 's', progress(1));
    const second = await (await rig.gateway()).get(session);
    expect(dataOf(second)).toEqual([progress(1)]);
  });

  it('[GW-LISTEN] one that comes after a message and a later attachment begins at its own place', async () => {
    await rig.backend.say(session, 's', progress(1));
    const first = await peer.get(session);
    expect(dataOf(first)).toEqual([progress(1)]);
    const second = await peer.get(session);
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    expect(dataOf(second)).toEqual([progress(2)]);
    const third = await (await rig.gateway()).get(session);
    await rig.backend.say(session, 's', progress(3));
    await rig.time.settle();
    expect(dataOf(third)).toEqual([progress(3)]);
    expect(third.messages()[0]?.cursor.seq).toBe(1);
  });

  it('[GW-LISTEN] if the start of the session is no longer held it begins at its own place', async () => {
    await rig.backend.say(session, 's', progress(1));
    rig.backend.log.controls.evictBefore(EVENTS, keyOf(session).from + 1);
    const exchange = await peer.get(session);
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    expect(dataOf(exchange)).toEqual([progress(2)]);
  });

  it('[GW-LISTEN] what was read for it once is not read again, however long the session', async () => {
    let bytes = 0;
    const counting = await rig.gateway({ cacheBytes: 1024 }, (log) => ({
      ...log,
      async read(from, position, options) {
        const batch = await log.read(from, position, options);
        if (from.topic === 'events' && options?.maxBytes === 256 * 1024) bytes += batch.records.length;
        return batch;
      },
    }));
    for (let step = 0; step < 500; step++) await rig.backend.events(0, sent('other', 's', '{}'));
    (await counting.get(session)).abort();
    await rig.time.settle();
    const first = bytes;
    expect(first).toBeGreaterThan(400);
    (await counting.get(session)).abort();
    await rig.time.settle();
    // The stream itself begins at the session's start again; the look back does not.
    expect(bytes).toBeLessThan(1.6 * first);
  });

  it('[GW-LISTEN] a look back that takes too long does not keep the client waiting', async () => {
    const stuck = await rig.gateway({ cacheBytes: 1024 }, (log) => ({
      ...log,
      read: (from, position, options) =>
        from.topic === 'events' && position < 20
          ? new Promise((resolve, reject) => {
              if (options?.maxBytes !== 256 * 1024) log.read(from, position, options).then(resolve, reject);
              else options.signal?.addEventListener('abort', () => reject(new Error('aborted')));
            })
          : log.read(from, position, options),
    }));
    for (let step = 0; step < 40; step++) await rig.backend.say(session, 's', progress(step));
    const exchange = await stuck.get(session);
    expect(exchange.sink.status).toBe(0);
    await rig.time.advance(5000);
    expect(exchange.sink.status).toBe(200);
    expect(rig.logs.some(({ level, event }) => level === 'warn' && event.includes('at its attachment'))).toBe(true);
  });

  it('[GW-TAKEOVER] a client that went before it was attached takes no stream', async () => {
    const living = await peer.get(session);
    let release = (): void => undefined;
    const slow = await rig.gateway({}, (log) => ({
      ...log,
      bounds: (of) =>
        of.topic === 'events' ? new Promise((resolve) => (release = () => resolve(log.bounds(of)))) : log.bounds(of),
    }));
    const before = await attachments();
    const [plain, resumed] = [await slow.get(session), await slow.get(session, lastIdOf(living.sink.text))];
    plain.abort();
    resumed.abort();
    release();
    await rig.time.run(Promise.all([plain.done, resumed.done]));
    expect(await attachments()).toBe(before);
    expect(living.sink.isEnded).toBe(false);
  });
});

describe('a client that goes early', () => {
  it('[GW-TAKEOVER] while it waits for its turn, takes no stream', async () => {
    const start = await peer.post(session, call('c1'));
    const id = lastIdOf(start.sink.text);
    for (let run = 0; run < 3; run++) {
      await peer.get(session, id);
      await peer.get(session);
    }
    const before = await attachments();
    const waiting = [await peer.get(session, id), await peer.get(session)];
    for (const exchange of waiting) exchange.abort();
    await rig.time.run(Promise.all(waiting.map(({ done }) => done)));
    await rig.time.advance(2000);
    expect(await attachments()).toBe(before);
    expect(waiting.map(({ sink }) => sink.text)).toEqual(['', '']);
  });

  it('[GW-STREAM] before its answer began is not written to', async () => {
    const acks: (() => void)[] = [];
    const slow = await rig.gateway({}, (log) => ({
      ...log,
      async append(to, records) {
        const appended = await log.append(to, records);
        await new Promise<void>((resolve) => acks.push(resolve));
        return appended;
      },
    }));
    const exchanges = [
      await slow.post(session, call('c1')),
      await slow.post(session, { jsonrpc: '2.0', method: 'n' }),
      await slow.get(session),
      await slow.send('DELETE', null, { session }),
    ];
    expect(acks).toHaveLength(4);
    for (const exchange of exchanges) exchange.abort();
    // DELETE appends twice.
    for (let round = 0; round < 2; round++) {
      for (const ack of acks) ack();
      await rig.time.settle();
    }
    await rig.time.run(Promise.all(exchanges.map(({ done }) => done)));
    expect(exchanges.map(({ sink }) => sink.text)).toEqual(['', '', '', '']);
    expect(slow.core.exchanges()).toBe(0);
  });
});

describe('newest attachment', () => {
  it('[GW-TAKEOVER] wins on any gateway: the older connection is told and closes, and no message is lost or doubled', async () => {
    const other = await rig.gateway();
    const older = await peer.post(session, call('c1'));
    const stream = { kind: 'request', at: 1 } as const;
    await rig.backend.say(session, stream, progress(1));
    await rig.time.settle();
    const newer = await other.get(session, lastIdOf(older.sink.text));
    await rig.time.run(older.done);
    expect(older.comments().at(-1)).toContain('superseded');
    await rig.backend.say(session, stream, progress(2));
    await rig.backend.say(session, stream, result('c1'), { end: true });
    await rig.time.run(newer.done);
    expect([...dataOf(older), ...dataOf(newer)]).toEqual([progress(1), progress(2), result('c1')]);
  });

  it('[GW-TAKEOVER] of two resumes at once on two gateways one stays, the same on both', async () => {
    const other = await rig.gateway();
    const start = await peer.get(session);
    const id = lastIdOf(start.sink.text);
    const pair = await Promise.all([peer.get(session, id), other.get(session, id)]);
    await rig.time.settle();
    expect(start.sink.isEnded).toBe(true);
    expect(pair.filter(({ sink }) => sink.isEnded)).toHaveLength(1);
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    expect(pair.flatMap(dataOf)).toEqual([progress(1)]);
  });

  it('[GW-TAKEOVER] a plain GET opens another stream, and the one before is over', async () => {
    const first = await peer.get(session);
    const second = await peer.get(session);
    await rig.time.run(first.done);
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    expect([dataOf(first), dataOf(second)]).toEqual([[], [progress(1)]]);
  });

  it('[GW-TAKEOVER] the fourth within 10 s waits a second before it takes the stream, others do not', async () => {
    const start = await peer.post(session, call('c1'));
    const id = lastIdOf(start.sink.text);
    for (let run = 0; run < 3; run++) expect((await peer.get(session, id)).sink.status).toBe(200);
    const before = await attachments();
    const fourth = await peer.get(session, id);
    expect(fourth.sink.status).toBe(0);
    expect((await peer.get(session)).sink.status).toBe(200);
    await rig.time.advance(999);
    expect(await attachments()).toBe(before + 1);
    await rig.time.advance(1);
    expect(fourth.sink.status).toBe(200);
    await rig.time.advance(10_000);
    expect((await peer.get(session, id)).sink.status).toBe(200);
  });

  it('[GW-TAKEOVER] if its attachment cannot be recorded, a resumed stream is given up and the client asked to come back', async () => {
    const start = await peer.post(session, call('c1'));
    await rig.backend.say(session, { kind: 'request', at: 1 }, progress(1));
    await rig.time.settle();
    const half = await rig.gateway({ appendTimeoutMs: 500 }, (log) => ({
      ...log,
      append: (to, records) => (to.topic === 'events' ? new Promise(() => undefined) : log.append(to, records)),
    }));
    const resumed = await half.get(session, start.blocks()[0]!.id);
    expect(dataOf(resumed)).toEqual([progress(1)]);
    await rig.time.advance(500);
    expect(resumed.sink.isEnded).toBe(true);
    expect(resumed.blocks().at(-1)).toEqual({ retry: expect.any(Number) as number });
  });
});

describe('an idle stream', () => {
  it('[GW-KEEPALIVE] gets a comment after each silence of the time set, and none while messages flow', async () => {
    const exchange = await peer.get(session);
    const keepalives = () => exchange.comments().filter((comment) => comment === 'keepalive').length;
    await rig.time.advance(999);
    expect(keepalives()).toBe(0);
    await rig.time.advance(1);
    expect(keepalives()).toBe(1);
    await rig.time.advance(1000);
    expect(keepalives()).toBe(2);
    for (let step = 0; step < 10; step++) {
      await rig.time.advance(900);
      await rig.backend.say(session, 's', progress(step));
    }
    await rig.time.settle();
    expect(keepalives()).toBe(2);
  });

  it('[GW-REFRESH] gets an id that moves the cursor on, at or behind what this connection has passed, and can resume there', async () => {
    const exchange = await peer.get(session);
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    const before = idBlocks(exchange).length;
    const [other] = await rig.backend.events(0, sent('someone', 's', '{}'));
    await rig.time.advance(3499);
    expect(idBlocks(exchange)).toHaveLength(before);
    await rig.time.advance(1);
    const refresh = idBlocks(exchange).at(-1)!;
    expect(idBlocks(exchange)).toHaveLength(before + 1);
    expect(refresh.data).toBe('');
    expect(cursorOf(refresh.id!)).toMatchObject({ offset: other, seq: 1 });
    const resumed = await (await rig.gateway()).get(session, refresh.id);
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    expect(dataOf(resumed)).toEqual([progress(2)]);
    expect(resumed.messages()[0]?.cursor.seq).toBe(2);
  });

  it('[GW-REFRESH] it comes in time also where comments are rare, again and again', async () => {
    const rare = await rig.gateway({ keepAliveMs: 1_000_000, refreshMs: 2000 });
    const exchange = await rare.get(session);
    const before = idBlocks(exchange).length;
    await rig.time.advance(10_000);
    expect(idBlocks(exchange)).toHaveLength(before + 5);
    expect(exchange.comments()).not.toContain('keepalive');
  });

  it('[GW-REFRESH] a paused connection with a message queued never gets an id beyond that message', async () => {
    const exchange = await peer.get(session);
    exchange.sink.isBlocked = true;
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    const second = await rig.backend.say(session, 's', progress(2));
    for (let step = 0; step < 20; step++) {
      await rig.backend.events(0, sent('someone', 's', '{}'));
      await rig.time.advance(1000);
    }
    // Nothing was written since the first message: whatever id is there lies before the second.
    for (const { id } of idBlocks(exchange)) expect(cursorOf(id!).offset).toBeLessThan(second);
    exchange.sink.unblock();
    await rig.time.advance(5000);
    expect(dataOf(exchange)).toEqual([progress(1), progress(2)]);
    expect(cursorOf(idBlocks(exchange).at(-1)!.id!).offset).toBeGreaterThan(second);
  });

  it.each(['2025-03-26', '2025-06-18'])('[GW-REFRESH] clients of %s get comments only', async (version) => {
    const old = await rig.open(peer, version);
    const exchange = await peer.get(old);
    await rig.time.advance(20_000);
    expect(idBlocks(exchange)).toEqual([]);
    expect(exchange.comments().filter((comment) => comment === 'keepalive')).toHaveLength(20);
  });

  it('[GW-RETRY] the time to wait is spread over a quarter up and down, so that clients do not all come back at once', async () => {
    const waits: number[] = [];
    for (let run = 0; run < 100; run++) {
      const exchange = await peer.post(session, call(run));
      waits.push(exchange.blocks()[0]!.retry!);
      exchange.abort();
    }
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(375);
    expect(Math.max(...waits)).toBeLessThanOrEqual(625);
    expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(150);
  });
});

describe('closed by the server', () => {
  it('[GW-POLL] the client is told when to come back, and goes on where it was', async () => {
    const exchange = await peer.post(session, call('c1'));
    const stream = { kind: 'request', at: 1 } as const;
    await rig.backend.say(session, stream, progress(1));
    await rig.backend.events(0, closed(keyOf(session).key, stream, rig.backend.claims[0]));
    await rig.time.run(exchange.done);
    expect(exchange.blocks().at(-1)).toEqual({ retry: expect.any(Number) as number });
    await rig.backend.say(session, stream, progress(2));
    const resumed = await peer.get(session, lastIdOf(exchange.sink.text));
    expect(dataOf(resumed)).toEqual([progress(2)]);
    expect(resumed.sink.isEnded).toBe(false);
  });

  it('[GW-POLL] a client that has no id yet, and could not come back, is not closed', async () => {
    const old = await rig.open(peer, '2025-06-18');
    const exchange = await peer.post(old, call('c1'));
    const at = (await rig.backend.inbound()).at(-1)!.offset;
    await rig.backend.events(0, closed(keyOf(old).key, { kind: 'request', at }, rig.backend.claims[0]));
    await rig.backend.say(old, { kind: 'request', at }, result('c1'), { end: true });
    await rig.time.run(exchange.done);
    expect(dataOf(exchange)).toEqual([result('c1')]);
  });
});

describe('records that others wrote', () => {
  const POISON = [
    '',
    'nonsense',
    '{"a":1}',
    '[]',
    'null',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":"m"',
    '\u0000',
  ];

  it.each(POISON)('[GW-POISON] what cannot be read ends its call with an error: %j', async (payload) => {
    const exchange = await peer.post(session, call('c1'));
    const stream = { kind: 'request', at: 1 } as const;
    await rig.backend.say(session, stream, progress(1));
    const [offset] = await rig.backend.events(0, sent(keyOf(session).key, stream, payload));
    await rig.time.run(exchange.done);
    const [first, error, ...rest] = exchange.messages();
    expect(JSON.parse(first!.data)).toEqual(progress(1));
    expect(JSON.parse(error!.data)).toMatchObject({ id: 'c1', error: { code: -32603, data: { code: 'INTERNAL' } } });
    expect(rest).toEqual([]);
    const again = await (await rig.gateway()).get(session, first!.id);
    await rig.time.run(again.done);
    expect(again.messages()).toEqual([error]);
    expect((await peer.get(session, error!.id)).sink.status).toBe(204);
    expect(rig.logs.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).toContainEqual({
      partition: 0,
      offset,
    });
  });

  it.each(POISON)(
    '[GW-POISON] on a standalone stream it is replaced, the same for every reader, and the stream goes on: %j',
    async (payload) => {
      const exchange = await peer.get(session);
      await rig.backend.events(0, sent(keyOf(session).key, 's', payload));
      await rig.backend.say(session, 's', progress(2));
      await rig.time.settle();
      expect(dataOf(exchange)).toMatchObject([{ error: { code: -32603 } }, progress(2)]);
      expect(exchange.messages().map(({ cursor }) => cursor.seq)).toEqual([1, 2]);
      const again = await (await rig.gateway()).get(session, exchange.messages()[0]!.id);
      await rig.time.settle();
      expect(again.messages()).toEqual(exchange.messages().slice(1));
    },
  );

  it('[GW-POISON] a message of a foreign producer is delivered as it stands, line ends as a client will see them', async () => {
    const exchange = await peer.get(session);
    await rig.backend.events(0, sent(keyOf(session).key, 's', '{"jsonrpc":"2.0",\r\n"method":"m",\r"params":{}}'));
    await rig.time.settle();
    expect(exchange.messages()[0]?.data).toBe('{"jsonrpc":"2.0",\n"method":"m",\n"params":{}}');
  });

  it('[GW-STREAM] what a former owner writes late is not delivered', async () => {
    const exchange = await peer.get(session);
    await rig.backend.events(0, sent(keyOf(session).key, 's', JSON.stringify(progress(1)), { owner: 77 }));
    await rig.backend.say(session, 's', progress(2));
    await rig.time.settle();
    expect(dataOf(exchange)).toEqual([progress(2)]);
    expect(exchange.messages()[0]?.cursor.seq).toBe(1);
  });

  it("[GW-STREAM] another session's message for the same stream is not delivered", async () => {
    const exchange = await peer.post(session, call('c1'));
    const mallory = await rig.open(peer);
    await rig.backend.say(mallory, { kind: 'request', at: 1 }, result('c1', 'forged'), { end: true });
    await rig.time.settle();
    expect(exchange.messages()).toEqual([]);
    expect(exchange.sink.isEnded).toBe(false);
  });
});

describe('a slow reader', () => {
  it('[GW-SLOW] is not written to before it has taken what was written, and misses and repeats nothing', async () => {
    const tiny = await rig.gateway({ cacheBytes: 64 * 1024 });
    const exchange = await tiny.get(session);
    await rig.time.settle();
    exchange.sink.isBlocked = true;
    const text = 'x'.repeat(10_000);
    const count = 300;
    for (let step = 0; step < count; step++) await rig.backend.say(session, 's', { ...progress(step), text });
    await rig.time.settle();
    const taken = exchange.sink.text.length;
    expect(taken).toBeLessThan(64 * 1024 + 11_000);
    // One window at a time: each is bounded as the first was.
    for (let run = 0; run < 200 && exchange.messages().length < count; run++) {
      const before = exchange.sink.text.length;
      exchange.sink.takeOnce();
      await rig.time.advance(10);
      expect(exchange.sink.text.length - before).toBeLessThan(64 * 1024 + 11_000);
    }
    expect(exchange.messages().map(({ cursor }) => cursor.seq)).toEqual(
      Array.from({ length: count }, (_, step) => step + 1),
    );
  });

  it('[GW-SLOW] does not delay the others', async () => {
    const slow = await peer.get(session);
    slow.sink.isBlocked = true;
    const quick = await peer.post(session, call('c1'));
    for (let step = 0; step < 100; step++) await rig.backend.say(session, 's', progress(step));
    await rig.backend.say(session, { kind: 'request', at: 1 }, result('c1'), { end: true });
    await rig.time.run(quick.done);
    expect(dataOf(quick)).toEqual([result('c1')]);
  });

  it('[GW-SLOW] that goes away leaves nothing behind', async () => {
    const exchange = await peer.get(session);
    exchange.sink.isBlocked = true;
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    exchange.abort();
    await rig.time.run(exchange.done);
    expect(peer.core.exchanges()).toBe(0);
  });
});
