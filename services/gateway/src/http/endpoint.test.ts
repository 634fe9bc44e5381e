import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { noMetrics } from '@throughline/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progress, result } from '../testing/backend.ts';
import { call, initialize } from '../testing/core-rig.ts';
import { createHttpRig, HEADERS, readAll, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';
import { messagesOf } from '../testing/sse-reading.ts';
import { ListenError } from './listen.ts';

let rig: HttpRig;
beforeEach(async () => {
  rig = await createHttpRig();
});
afterEach(() => rig.stop());

const codeOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { error: { data: { code: unknown } } }).error.data.code;

describe('a call over HTTP', () => {
  it('[GW-POST] a request is answered by its stream, chunk by chunk as it comes', async () => {
    const session = await rig.open();
    const response = await rig.post(call(1), { 'mcp-session-id': session });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader.read()).value ?? '';
    expect(text).toMatch(/^id: \S+\nretry: \d+\ndata: \n\n$/);
    for (const step of [1, 2]) {
      await rig.backend.say(session, { kind: 'request', at: 1 }, progress(step));
      text += (await reader.read()).value ?? '';
      expect(messagesOf(text)).toHaveLength(step);
    }
    await rig.backend.say(session, { kind: 'request', at: 1 }, result(1), { end: true });
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    expect(messagesOf(text).map(({ data }) => JSON.parse(data) as unknown)).toEqual([
      progress(1),
      progress(2),
      result(1),
    ]);
  });

  it('[GW-POST] 202 and 204 have no body', async () => {
    const session = await rig.open();
    const accepted = await rig.post({ jsonrpc: '2.0', method: 'n' }, { 'mcp-session-id': session });
    expect([accepted.status, await accepted.text()]).toEqual([202, '']);
    const deleted = await fetch(rig.url, { method: 'DELETE', headers: { 'mcp-session-id': session } });
    expect([deleted.status, await deleted.text()]).toEqual([204, '']);
    expect((await rig.post(call(1), { 'mcp-session-id': session })).status).toBe(404);
  });

  it('[GW-STREAM] a client that goes frees its connection', async () => {
    const session = await rig.open();
    const gone = new AbortController();
    const response = await fetch(rig.url, {
      headers: { accept: 'text/event-stream', 'mcp-session-id': session },
      signal: gone.signal,
    });
    expect(response.status).toBe(200);
    gone.abort();
    await rig.gateway.stop();
  });
});

describe('paths', () => {
  it('[GW-PATH] each server is at /mcp/<name>, a single one at /mcp as well, and the path is part of the session', async () => {
    const session = await rig.open();
    const named = await fetch(`${rig.gateway.url}/mcp/demo`, {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': session },
      body: JSON.stringify({ jsonrpc: '2.0', method: 'n' }),
    });
    expect(named.status).toBe(202);
    const two = await createHttpRig({ servers: ['demo', 'b.2', 'B.2'] });
    const statusAt = async (path: string): Promise<number> =>
      (await fetch(`${two.gateway.url}${path}`, { method: 'POST', headers: HEADERS, body: '{}' })).status;
    expect([await statusAt('/mcp/demo'), await statusAt('/mcp/b.2'), await statusAt('/mcp')]).toEqual([400, 400, 404]);
    // Names that differ in case are two servers, each with sessions of its own.
    const open = async (name: string): Promise<Response> =>
      await fetch(`${two.gateway.url}/mcp/${name}`, {
        method: 'POST',
        headers: HEADERS,
        body: JSON.stringify(initialize('2025-06-18')),
      });
    const opened = await open('B.2');
    expect((await two.backend.inbound()).at(-1)?.body).toMatchObject({ server: 'B.2' });
    await opened.body?.cancel();
    await two.stop();
  });

  it('[GW-PATH] a slash behind it is the same path', async () => {
    const session = await rig.open();
    const response = await fetch(`${rig.url}/`, {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': session },
      body: JSON.stringify({ jsonrpc: '2.0', method: 'n' }),
    });
    expect(response.status).toBe(202);
  });

  it.each([
    '/',
    '/mcp/other',
    '/mcpx',
    '/mcp/demo/x',
    '/%00',
    '/%E0%A4%A',
    '/mcp/%2e%2e',
    '//mcp',
    '/MCP',
    '/mcp/Demo',
    '/.well-known/oauth-protected-resource',
  ])('[GW-PATH] %s is 404, and says where MCP is', async (path) => {
    const socket = await rig.raw(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    );
    const text = await readAll(socket);
    expect(text).toMatch(/^HTTP\/1\.1 40[04] /);
    expect(text).not.toMatch(/^HTTP\/1\.1 5/);
    if (!path.includes('%')) expect(text).toContain('MCP is at /mcp, /mcp/demo');
  });
});

describe('CORS', () => {
  const preflight = (headers: Record<string, string>): Promise<Response> =>
    fetch(rig.url, {
      method: 'OPTIONS',
      headers: {
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'mcp-session-id',
        ...headers,
      },
    });
  const listOf = (response: Response, name: string): string[] =>
    (response.headers.get(name) ?? '').split(', ').map((entry) => entry.toLowerCase());

  it('[GW-CORS] the preflight of an allowed origin names what may be sent', async () => {
    const response = await preflight({ origin: 'http://localhost:6274' });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:6274');
    expect(response.headers.get('vary')).toContain('Origin');
    expect(listOf(response, 'access-control-allow-methods')).toEqual(expect.arrayContaining(['get', 'post', 'delete']));
    expect(listOf(response, 'access-control-allow-headers')).toEqual(
      expect.arrayContaining([
        'content-type',
        'authorization',
        'mcp-session-id',
        'mcp-protocol-version',
        'last-event-id',
      ]),
    );
  });

  it('[GW-CORS] any answer to an allowed origin, also a refusal, can be read with the headers that matter', async () => {
    const session = await rig.open();
    for (const body of [call(1), {}]) {
      const response = await rig.post(body, { origin: 'http://localhost:6274', 'mcp-session-id': session });
      expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:6274');
      expect(listOf(response, 'access-control-expose-headers')).toEqual(
        expect.arrayContaining([
          'mcp-session-id',
          'x-mcp-replay-epoch',
          'x-mcp-replay-from',
          'www-authenticate',
          'retry-after',
        ]),
      );
      await response.body?.cancel();
    }
  });

  it('[GW-CORS] a foreign origin gets no CORS header, and 403 on anything but the preflight', async () => {
    const asked = await preflight({ origin: 'https://evil.example' });
    expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    const response = await rig.post(call(1), { origin: 'https://evil.example' });
    expect(response.status).toBe(403);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(await codeOf(response)).toBe('ORIGIN_REFUSED');
  });

  it('[GW-HOST] a foreign Host gets 403 and no CORS header, whatever the Origin', async () => {
    const socket = await rig.raw(
      'POST /mcp HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    );
    const text = await readAll(socket);
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
    expect(text.toLowerCase()).not.toContain('access-control');
    expect(text).toContain('HOST_REFUSED');
  });
});

describe('bodies', () => {
  it('[GW-LIMIT] a body above the limit is 413 before anything is appended, with or without a length', async () => {
    const small = await createHttpRig({ maxBodyBytes: 2000 });
    const inside = await small.open();
    const fill = (bytes: number): string => {
      const empty = JSON.stringify(call(1, 'm', { x: '' }));
      return JSON.stringify(call(1, 'm', { x: 'x'.repeat(bytes - empty.length) }));
    };
    expect(fill(2001)).toHaveLength(2001);
    const fits = await small.post(fill(2000), { 'mcp-session-id': inside });
    expect(fits.status).toBe(200);
    await fits.body?.cancel();
    const before = (await small.backend.inbound()).length;
    const over = await small.post(fill(2001), { 'mcp-session-id': inside });
    expect(over.status).toBe(413);
    expect(await codeOf(over)).toBe('BODY_TOO_LARGE');
    const chunked = await fetch(small.url, {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': inside },
      body: new Blob([fill(5000)]).stream(),
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
    expect((await small.backend.inbound()).length).toBe(before);
    await small.stop();
  });

  it('[GW-LIMIT] a body that announces more is refused at once, not when it has come', async () => {
    const { hostname, port } = new URL(rig.url);
    const socket = connect(Number(port), hostname);
    try {
      const head = Object.entries({ ...HEADERS, host: `${hostname}:${port}`, 'content-length': '99000000000' });
      socket.write(`POST /mcp HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n{`);
      const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /);
    } finally {
      socket.destroy();
    }
  });

  it('[GW-LIMIT] a compressed body is 415', async () => {
    const response = await rig.post('{}', { 'content-encoding': 'gzip' });
    expect(response.status).toBe(415);
    expect(await codeOf(response)).toBe('UNSUPPORTED_MEDIA_TYPE');
  });

  it('[GW-LIMIT] a body is not read for those who may not speak, however long it is said to be', async () => {
    const guarded = await createHttpRig({ tokens: [{ principal: 'a', sha256: '0'.repeat(64) }] });
    const socket = await guarded.raw(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n{',
    );
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
    await guarded.stop();
  });

  it('[GW-LIMIT] bodies that are being read are bounded together; beyond that a POST is 503, and room comes back', async () => {
    const small = await createHttpRig({ maxBodyBytes: 1024 });
    const head =
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n{';
    const sockets = await Promise.all(Array.from({ length: 64 }, () => small.raw(head)));
    await until(async () => (await small.post('{}')).status === 503);
    const refused = await small.post('{}');
    expect(await codeOf(refused)).toBe('CAPACITY');
    for (const socket of sockets) socket.destroy();
    await until(async () => (await small.post('{}')).status === 400);
    await small.stop();
  });

  it('[GW-BODY-SHARE] silent sockets that announce large bodies take no room from anybody', async () => {
    const small = await createHttpRig({ maxBodyBytes: 1024 });
    const head =
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n';
    const sockets = await Promise.all(Array.from({ length: 100 }, () => small.raw(head)));
    // Whatever was sent before is read by now.
    for (let count = 0; count < 10; count++) expect((await small.post('{}')).status).toBe(400);
    for (const socket of sockets) socket.destroy();
    await small.stop();
  });

  it('[GW-BODY-SHARE] a principal whose bodies stall takes its own share and no other: it is 429, others are served', async () => {
    const tokens = ['alice', 'bob'].map((principal) => ({
      principal,
      sha256: createHash('sha256').update(`tok-${principal}`).digest('hex'),
    }));
    const small = await createHttpRig({ maxBodyBytes: 1024, tokens });
    const auth = (name: string) => ({ authorization: `Bearer tok-${name}` });
    const half = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tok-alice\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n{`;
    const sockets = await Promise.all(Array.from({ length: 200 }, () => small.raw(half)));
    await until(async () => (await small.post('{}', auth('alice'))).status === 429);
    const refused = await small.post('{}', auth('alice'));
    expect([refused.headers.get('retry-after'), await codeOf(refused)]).toEqual(['1', 'RATE_LIMITED']);
    for (let count = 0; count < 10; count++) expect((await small.post('{}', auth('bob'))).status).toBe(400);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await small.post('{}', auth('alice'))).status === 400);
    await small.stop();
  });

  it('[GW-LIMIT] an open stream holds no room for bodies', async () => {
    const small = await createHttpRig({ maxBodyBytes: 1024 });
    const session = await small.open();
    const pad = 'x'.repeat(600);
    const streams = [];
    for (let id = 0; id < 130; id++)
      streams.push(await small.post(call(id, 'm', { pad }), { 'mcp-session-id': session }));
    expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]));
    for (const stream of streams) await stream.body?.cancel();
    await small.stop();
  });

  it('[GW-POST] a client that goes in the middle of its body leaves nothing in the log', async () => {
    const session = await rig.open();
    const before = (await rig.backend.inbound()).length;
    const socket = await rig.raw(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ${session}\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"jsonrpc"`,
    );
    socket.destroy();
    await rig.gateway.stop();
    expect((await rig.backend.inbound()).length).toBe(before);
  });
});

describe('hostile headers', () => {
  const NAMES = [
    'Mcp-Session-Id',
    'Last-Event-ID',
    'MCP-Protocol-Version',
    'Authorization',
    'Origin',
    'Accept',
    'traceparent',
    'Content-Type',
  ];
  const VALUES = [
    '',
    '.'.repeat(8000),
    'x'.repeat(15_000),
    '\xff\xfe\x80',
    '"\\\'<>{}',
    '\t \t',
    '0'.repeat(400),
    '__proto__',
    '%00%0d%0a',
  ];

  it.each(NAMES)('[GW-STATUS] no value of %s makes the gateway fail', async (name) => {
    const session = await rig.open();
    for (const value of VALUES) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const known = [`Host: localhost`, 'Content-Length: 2', 'Connection: close'];
        const rest = [
          `Mcp-Session-Id: ${session}`,
          'Accept: application/json, text/event-stream',
          'Content-Type: application/json',
        ];
        const headers = [...known, ...rest.filter((line) => !line.startsWith(`${name}:`)), `${name}: ${value}`];
        const socket = await rig.raw(`${method} /mcp HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n{}`);
        const [answer] = (await once(socket, 'data')) as [Buffer];
        socket.destroy();
        expect([name, value.slice(0, 20), method, answer.toString().slice(9, 12)]).toEqual([
          name,
          value.slice(0, 20),
          method,
          expect.stringMatching(/^[24]/),
        ]);
      }
    }
  });

  it('[GW-LIMIT] headers above 16 KiB are 431, and line ends inside a value never reach the gateway', async () => {
    const huge = await readAll(
      await rig.raw(`GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
    );
    expect(huge).toMatch(/^HTTP\/1\.1 431 /);
    const control = await readAll(
      await rig.raw('GET /mcp HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: a\x00b\r\n\r\n'),
    );
    expect(control).toMatch(/^HTTP\/1\.1 400 /);
    const nonsense = await readAll(await rig.raw('\x16\x03\x01nonsense\r\n\r\n'));
    expect(nonsense).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('[GW-STATUS] repeated headers are no way round a check', async () => {
    const session = await rig.open();
    const text = await readAll(
      await rig.raw(
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ${session}\r\nMcp-Session-Id: ${session}\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
      ),
    );
    expect(text).toMatch(/^HTTP\/1\.1 4/);
  });
});

describe('the server', () => {
  it('[GW-STATUS] every answer is counted, by method and status, also what is refused before it is read', async () => {
    const counts = new Map<string, number>();
    const counting = await createHttpRig(
      { maxBodyBytes: 2000 },
      {
        ...noMetrics,
        add: (name, by = 1, labels = {}) => {
          const key = `${labels['method'] ?? ''} ${labels['status'] ?? ''}`;
          if (name === 'throughline_gateway_requests_total') counts.set(key, (counts.get(key) ?? 0) + by);
        },
      },
    );
    await counting.post('x'.repeat(3000));
    await counting.post('{');
    await counting.post('{}', { origin: 'https://evil.example' });
    await fetch(`${counting.gateway.url}/nowhere`);
    await until(() => counts.size === 4);
    expect(Object.fromEntries(counts)).toEqual({ 'POST 413': 1, 'POST 400': 1, 'POST 403': 1, 'GET 404': 1 });
    await counting.stop();
  });

  it('[GW-ADMIN] health and metrics are on their own port only', async () => {
    const at = async (path: string): Promise<[number, string]> => {
      const response = await fetch(`${rig.gateway.adminUrl!}${path}`);
      return [response.status, await response.text()];
    };
    expect(await at('/livez')).toEqual([200, 'ok\n']);
    expect(await at('/readyz?x=1')).toEqual([200, 'ok\n']);
    expect(await at('/metrics')).toEqual([200, '# metrics\n']);
    expect((await at('/mcp'))[0]).toBe(404);
    expect((await fetch(`${rig.gateway.url}/metrics`)).status).toBe(404);
  });

  it('[GW-ADMIN-HOST] a page that was sent here by DNS rebinding gets neither health nor metrics; probes do', async () => {
    const { port } = new URL(rig.gateway.adminUrl!);
    const statusFor = async (host: string, path: string): Promise<string | undefined> => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      return /^HTTP\/1\.1 (\d+)/.exec(await readAll(socket))?.[1];
    };
    for (const path of ['/livez', '/readyz', '/metrics', '/']) {
      expect(await statusFor('rebound.evil.example', path)).toBe('403');
      expect(await statusFor(`rebound.evil.example:${port}`, path)).toBe('403');
    }
    for (const host of [`127.0.0.1:${port}`, 'localhost', '10.1.2.3:9464', '[2001:db8::1]:9464', 'gateway:9464'])
      expect([host, await statusFor(host, '/metrics')]).toEqual([host, '200']);
  });

  it('[GW-ADMIN] from the first moment of a stop it is alive and not ready, and clients are asked to connect elsewhere', async () => {
    const slow = await createHttpRig({ drainMs: 60_000 });
    const session = await slow.open('2025-06-18');
    const open = await slow.post(call(1), { 'mcp-session-id': session });
    const stopping = slow.gateway.stop();
    const status = async (path: string): Promise<number> => (await fetch(`${slow.gateway.adminUrl!}${path}`)).status;
    expect([await status('/livez'), await status('/readyz')]).toEqual([200, 503]);
    const answered = await slow.post({ jsonrpc: '2.0', method: 'n' }, { 'mcp-session-id': session });
    expect([answered.status, answered.headers.get('connection')]).toEqual([202, 'close']);
    await slow.backend.say(session, { kind: 'request', at: 1 }, result(1), { end: true });
    expect(messagesOf(await open.text())).toHaveLength(1);
    await stopping;
    await expect(fetch(slow.url)).rejects.toThrow();
    await slow.backend.log.close();
  });

  it('[GW-LISTEN-ERROR] an address in use is named with the way out, and nothing stays half-started', async () => {
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    for (const [part, flag] of [
      ['listen', '--listen'],
      ['admin', '--admin'],
    ] as const) {
      const failed = createHttpRig({ [part]: { host: '127.0.0.1', port } });
      await expect(failed).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' });
      await expect(failed).rejects.toThrow(`127.0.0.1:${port}`);
      await expect(failed).rejects.toThrow(flag);
      await expect(failed).rejects.toBeInstanceOf(ListenError);
    }
    await expect(createHttpRig({ listen: { host: '203.0.113.1', port: 1 } })).rejects.toMatchObject({
      code: 'ADDRESS_REFUSED',
    });
    taken.close();
  });

  it('[GW-POST] a second request on the same socket is served after the first', async () => {
    const session = await rig.open();
    const socket = await rig.raw('');
    const one = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ${session}\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n{"jsonrpc":"2.0","method":"abc"}`;
    const reading = readAll(socket);
    socket.write(one + one.replace('Content-Type', 'Connection: close\r\nContent-Type'));
    const text = await reading;
    expect(text.match(/HTTP\/1\.1 202 /g)).toHaveLength(2);
  });

  it('[GW-STATUS] HEAD, PUT, PATCH and strange methods are 405', async () => {
    for (const method of ['HEAD', 'PUT', 'PATCH', 'TRACE', 'REPORT']) {
      const outgoing = httpRequest({ port: rig.port, method, path: '/mcp', agent: false });
      outgoing.end();
      const [response] = (await once(outgoing, 'response')) as [
        { statusCode: number; headers: Record<string, string>; resume(): void },
      ];
      response.resume();
      expect([method, response.statusCode, response.headers['allow']]).toEqual([
        method,
        405,
        'POST, GET, DELETE, OPTIONS',
      ]);
    }
  });
});
