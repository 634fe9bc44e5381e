/** Every status that the gateway itself raises, from literals. */
import { createHash } from 'node:crypto';
import { sessionEnded } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyOf } from './testing/backend.ts';
import { call, createRig, initialize } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig, SendOptions } from './testing/core-rig.ts';

let rig: Rig;
let peer: Peer;
beforeEach(async () => {
  rig = await createRig({ maxRecordBytes: 100_000 });
  await rig.backend.startWorker();
  peer = await rig.gateway();
});
afterEach(() => rig.stop());

interface Case {
  readonly what: string;
  readonly status: number;
  readonly code: string;
  readonly jsonRpc: number;
  readonly retry: string;
  readonly id?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly run: (session: string) => Promise<Exchange>;
}

const post =
  (body: unknown, options: SendOptions = {}) =>
  (session: string) =>
    peer.post(session, body, options);
const withHeaders = (headers: SendOptions['headers'] = {}, body: unknown = call(7)) => post(body, { headers });

const CASES: readonly Case[] = [
  {
    what: 'body that is no JSON',
    status: 400,
    code: 'MALFORMED_JSON',
    jsonRpc: -32700,
    retry: 'never',
    run: post('{'),
  },
  {
    what: 'body that is no message',
    status: 400,
    code: 'INVALID_REQUEST',
    jsonRpc: -32600,
    retry: 'never',
    run: post('{}'),
  },
  {
    what: 'request without a session',
    status: 400,
    code: 'SESSION_REQUIRED',
    jsonRpc: -32000,
    retry: 'never',
    id: 7,
    run: () => peer.send('POST', call(7)),
  },
  {
    what: 'DELETE without a session',
    status: 400,
    code: 'SESSION_REQUIRED',
    jsonRpc: -32000,
    retry: 'never',
    run: () => peer.send('DELETE', null),
  },
  {
    what: 'resume without a session',
    status: 400,
    code: 'SESSION_REQUIRED',
    jsonRpc: -32000,
    retry: 'never',
    run: () => peer.send('GET', null, { headers: { 'last-event-id': 'x' } }),
  },
  {
    what: 'session that never was',
    status: 404,
    code: 'SESSION_NOT_FOUND',
    jsonRpc: -32001,
    retry: 'reinitialize',
    id: 7,
    run: () => peer.post('nonsense', call(7)),
  },
  {
    what: 'unsupported version',
    status: 400,
    code: 'VERSION_UNSUPPORTED',
    jsonRpc: -32000,
    retry: 'never',
    id: 7,
    run: withHeaders({ 'mcp-protocol-version': '1999-01-01' }),
  },
  {
    what: 'request of the era without sessions',
    status: 400,
    code: 'ERA_UNSUPPORTED',
    jsonRpc: -32022,
    retry: 'never',
    id: 7,
    run: withHeaders({}, call(7, 'tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } })),
  },
  {
    what: 'foreign Origin',
    status: 403,
    code: 'ORIGIN_REFUSED',
    jsonRpc: -32000,
    retry: 'never',
    run: withHeaders({ origin: 'https://evil.example' }),
  },
  {
    what: 'foreign Host',
    status: 403,
    code: 'HOST_REFUSED',
    jsonRpc: -32000,
    retry: 'never',
    run: withHeaders({ host: 'evil.example' }),
  },
  {
    what: 'PUT',
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    jsonRpc: -32000,
    retry: 'never',
    headers: { Allow: 'POST, GET, DELETE, OPTIONS' },
    run: (session) => peer.send('PUT', null, { session }),
  },
  {
    what: 'GET of the transport of 2024-11-05',
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    jsonRpc: -32000,
    retry: 'never',
    headers: { Allow: 'POST' },
    run: () => peer.send('GET', null),
  },
  {
    what: 'POST that does not accept streams',
    status: 406,
    code: 'NOT_ACCEPTABLE',
    jsonRpc: -32000,
    retry: 'never',
    run: withHeaders({ accept: 'application/json' }),
  },
  {
    what: 'POST that does not accept JSON',
    status: 406,
    code: 'NOT_ACCEPTABLE',
    jsonRpc: -32000,
    retry: 'never',
    run: withHeaders({ accept: 'text/event-stream' }),
  },
  {
    what: 'GET that does not accept streams',
    status: 406,
    code: 'NOT_ACCEPTABLE',
    jsonRpc: -32000,
    retry: 'never',
    run: (session) => peer.get(session, undefined, { headers: { accept: 'application/json' } }),
  },
  {
    what: 'message larger than a record',
    status: 413,
    code: 'BODY_TOO_LARGE',
    jsonRpc: -32000,
    retry: 'never',
    id: 7,
    run: withHeaders({}, call(7, 'm', { x: 'x'.repeat(100_000) })),
  },
  {
    what: 'body that is not application/json',
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
    jsonRpc: -32000,
    retry: 'never',
    run: withHeaders({ 'content-type': 'text/plain' }),
  },
];

describe('refusals', () => {
  it.each(CASES)(
    '[GW-STATUS] $what: $status $code',
    async ({ status, code, jsonRpc, retry, id = null, headers = {}, run }) => {
      const session = await rig.open(peer);
      const before = (await rig.backend.inbound()).length;
      const exchange = await run(session);
      await rig.time.run(exchange.done);
      expect(exchange.sink.status).toBe(status);
      expect(exchange.sink.headers).toMatchObject({
        'Content-Type': 'application/json',
        'Cache-Control': 'no-store',
        ...headers,
      });
      expect(exchange.json()).toMatchObject({ jsonrpc: '2.0', id, error: { code: jsonRpc, data: { code, retry } } });
      expect((await rig.backend.inbound()).length).toBe(before);
      expect(peer.core.exchanges()).toBe(0);
    },
  );

  it('[GW-GET] a client of 2024-11-05 is told which transport is served instead', async () => {
    const { message } = (await peer.send('GET', null)).json().error!;
    expect(message).toContain('2024-11-05');
    expect(message).toContain('Streamable HTTP');
  });

  it('[GW-AUTH] with tokens, every method needs one', async () => {
    const tokens = [{ principal: 'alice', sha256: createHash('sha256').update('tok').digest('hex') }];
    const guarded = await rig.gateway({ tokens });
    const authorization = 'Bearer tok';
    const session = await rig.open(guarded, '2025-11-25', { headers: { authorization } });
    for (const method of ['POST', 'GET', 'DELETE']) {
      const refused = await guarded.send(method, call(1), { session });
      expect([method, refused.sink.status]).toEqual([method, 401]);
      expect(refused.sink.headers['WWW-Authenticate']).toBe('Bearer');
      expect(refused.json()).toMatchObject({ error: { data: { code: 'UNAUTHORIZED', retry: 'never' } } });
    }
    expect((await guarded.send('POST', call(1), { session, headers: { authorization } })).sink.status).toBe(200);
  });

  it('[GW-LIMIT] beyond its connections it refuses with 503, takes nothing in, and has room again when one ends', async () => {
    const small = await rig.gateway({ maxConnections: 2 });
    const session = await rig.open(small);
    const [first] = [await small.post(session, call(1)), await small.get(session)];
    const before = (await rig.backend.inbound()).length;
    for (const refused of [await small.post(session, call(3)), await small.get(session)]) {
      expect(refused.sink.status).toBe(503);
      expect(refused.sink.headers['Retry-After']).toBe('1');
      expect(refused.json()).toMatchObject({ error: { data: { code: 'CAPACITY', retry: 'after-backoff' } } });
    }
    expect((await small.post(session, { jsonrpc: '2.0', method: 'n' })).sink.status).toBe(202);
    expect((await rig.backend.inbound()).length).toBe(before + 1);
    first.abort();
    await rig.time.settle();
    expect((await small.post(session, call(3))).sink.status).toBe(200);
  });

  it('[GW-LIMIT] a request that fails gives its place back', async () => {
    const small = await rig.gateway({ maxConnections: 1 });
    const session = await rig.open(small);
    rig.backend.log.controls.failAppends('refused');
    for (let run = 0; run < 3; run++) {
      const failed = [
        await small.post(session, call(1)),
        await small.get(session),
        await small.get(session, 'nonsense'),
      ];
      expect(failed.map((exchange) => exchange.json().error?.data['code'])).toEqual([
        'LOG_UNAVAILABLE',
        'LOG_UNAVAILABLE',
        'CURSOR_MALFORMED',
      ]);
    }
    rig.backend.log.controls.failAppends(null);
    expect((await small.post(session, call(1))).sink.status).toBe(200);
  });

  it('[GW-LIMIT] requests that arrive at once do not exceed the connections', async () => {
    const small = await rig.gateway({ maxConnections: 3 });
    const session = await rig.open(small);
    const exchanges = await Promise.all(Array.from({ length: 10 }, (_, id) => small.post(session, call(id))));
    expect(exchanges.filter(({ sink }) => sink.status === 200)).toHaveLength(3);
    expect(exchanges.filter(({ sink }) => sink.status === 503)).toHaveLength(7);
  });
});

describe('when the log fails', () => {
  it('[GW-POST] a refused append is 503: nothing was done', async () => {
    const session = await rig.open(peer);
    rig.backend.log.controls.failAppends('refused');
    const exchange = await peer.post(session, call(1));
    expect(exchange.sink.status).toBe(503);
    expect(exchange.sink.headers['Retry-After']).toBe('1');
    expect(exchange.json()).toMatchObject({
      id: 1,
      error: { data: { code: 'LOG_UNAVAILABLE', retry: 'after-backoff' } },
    });
    rig.backend.log.controls.failAppends(null);
    expect((await peer.post(session, call(1))).sink.status).toBe(200);
  });

  it.each(['unknown-stored', 'unknown-lost'] as const)(
    '[GW-POST] [LIM-UNKNOWN] an unknown append (%s) is 504: it may run',
    async (fault) => {
      const session = await rig.open(peer);
      rig.backend.log.controls.failAppends(fault);
      const exchange = await peer.post(session, call(1));
      expect(exchange.sink.status).toBe(504);
      expect(exchange.json()).toMatchObject({
        id: 1,
        error: { data: { code: 'APPEND_UNKNOWN', retry: 'application', mayHaveRun: true } },
      });
      rig.backend.log.controls.failAppends(null);
    },
  );

  it('[GW-POST] an append that is not acknowledged in time is 504 at the deadline, not later', async () => {
    const session = await rig.open(peer);
    const stuck = await rig.gateway({ appendTimeoutMs: 2000 }, (log) => ({
      ...log,
      append: (to, records) => (to.topic === 'inbound' ? new Promise(() => undefined) : log.append(to, records)),
    }));
    const exchange = await stuck.post(session, call(1));
    await rig.time.advance(1999);
    expect(exchange.sink.status).toBe(0);
    await rig.time.advance(1);
    expect(exchange.sink.status).toBe(504);
    const deleting = await stuck.send('DELETE', null, { session });
    await rig.time.advance(2000);
    expect(deleting.sink.status).toBe(503);
  });

  it('[GW-POST] a log that cannot be read is 503 at the deadline for each method, not a hang', async () => {
    const session = await rig.open(peer);
    const blind = await rig.gateway({ appendTimeoutMs: 2000 }, (log) => ({
      ...log,
      bounds: (of) => (of.topic === 'events' ? new Promise(() => undefined) : log.bounds(of)),
    }));
    const exchanges = [
      await blind.post(session, call(1)),
      await blind.get(session),
      await blind.send('POST', initialize('2025-11-25')),
    ];
    await rig.time.advance(2000);
    expect(exchanges.map(({ sink }) => sink.status)).toEqual([503, 503, 503]);
    expect(blind.core.exchanges()).toBe(0);
  });

  it('[GW-STATUS] a fault of ours is 500, told without its details, and logged with them', async () => {
    const session = await rig.open(peer);
    const faulty = await rig.gateway({}, (log) => ({
      ...log,
      append: () => {
        throw new TypeError('a defect');
      },
    }));
    const exchange = await faulty.post(session, call(1));
    expect(exchange.sink.status).toBe(500);
    expect(exchange.sink.text).not.toContain('a defect');
    expect(exchange.json()).toMatchObject({ error: { code: -32603, data: { code: 'INTERNAL' } } });
    expect(rig.logs.filter(({ level }) => level === 'error').map(({ fields }) => String(fields['error']))).toEqual([
      expect.stringContaining('a defect'),
    ]);
  });
});

describe('DELETE', () => {
  it('[GW-DELETE] the end is in the log before the answer, for the worker and for every gateway', async () => {
    const session = await rig.open(peer);
    const other = await rig.gateway();
    const exchange = await peer.send('DELETE', null, { session });
    expect(exchange.sink.status).toBe(204);
    expect(exchange.sink.text).toBe('');
    const { key } = keyOf(session);
    expect((await rig.backend.inbound()).at(-1)).toMatchObject({ key, body: { type: 'sessionEnd', server: 'demo' } });
    await rig.time.settle();
    for (const gateway of [peer, other]) {
      for (const again of [
        await gateway.post(session, call(1)),
        await gateway.get(session),
        await gateway.send('DELETE', null, { session }),
      ]) {
        expect(again.sink.status).toBe(404);
        expect(again.json()).toMatchObject({ error: { code: -32001, data: { code: 'SESSION_NOT_FOUND' } } });
      }
    }
    expect(await rig.backend.inbound()).toHaveLength(2);
  });

  it('[GW-DELETE] if the worker could not be told, no gateway takes the session for ended, and the client can try again', async () => {
    const session = await rig.open(peer);
    const half = await rig.gateway({}, (log) => ({
      ...log,
      append: (to, records) => {
        if (to.topic === 'inbound') rig.backend.log.controls.failAppends('refused');
        const appended = rig.backend.log.append(to, records);
        rig.backend.log.controls.failAppends(null);
        return appended;
      },
    }));
    expect((await half.send('DELETE', null, { session })).sink.status).toBe(503);
    await rig.time.settle();
    expect((await peer.send('DELETE', null, { session })).sink.status).toBe(204);
  });

  it('[GW-ENDED] when a session ends, an open call is told in-band at once, and the standalone stream closes', async () => {
    const session = await rig.open(peer);
    const open = await peer.post(session, call('c1'));
    const standalone = await peer.get(session);
    await rig.backend.events(0, sessionEnded(keyOf(session).key, rig.backend.claims[0]));
    await rig.time.run(open.done);
    await rig.time.run(standalone.done);
    const [message] = open.messages();
    expect(JSON.parse(message!.data)).toMatchObject({
      id: 'c1',
      error: { data: { type: 'ResumptionRejected', reason: 'session-ended', action: 'reinitialize' } },
    });
    expect(standalone.messages()).toEqual([]);
    expect((await peer.get(session, message!.id)).sink.status).toBe(204);
  });
});
