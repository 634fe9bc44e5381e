/**
 * Clients that are wrong on purpose, at real HTTP. Whatever they send: a clear 4xx or a cut connection, nothing of it in
 * the log, no effect on the session of the witness.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { noMetrics } from '@throughline/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { result } from '../testing/backend.ts';
import { call } from '../testing/core-rig.ts';
import { createHttpRig, HEADERS, readAll, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';
import { lastIdOf } from '../testing/sse-reading.ts';
import { openWitness } from '../testing/witness.ts';
import type { Witness } from '../testing/witness.ts';

let rig: HttpRig;
let witness: Witness;
beforeEach(async () => {
  rig = await createHttpRig();
  witness = await openWitness(rig);
});
afterEach(async () => {
  await witness.unharmed();
  await witness.close();
  await rig.stop();
});

const CRLF = '\r\n';
const head = (first: string, ...headers: readonly string[]): string =>
  `${[first, 'Host: localhost', ...headers].join(CRLF)}${CRLF}${CRLF}`;
/** The head of a POST that would be taken if its body were. */
const post = (session: string, ...headers: readonly string[]): string =>
  head(
    'POST /mcp HTTP/1.1',
    `Mcp-Session-Id: ${session}`,
    'Accept: application/json, text/event-stream',
    'Content-Type: application/json',
    ...headers,
  );
const NOTE = '{"jsonrpc":"2.0","method":"hostile"}';
const statusesOf = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = '']) => status);
const logged = async (): Promise<number> => (await rig.backend.inbound()).length;

/** All that the server answers to `text`, until it closes the connection. */
async function say(text: string): Promise<string> {
  return readAll(await rig.raw(text));
}

describe('requests that two readers could take for different ones', () => {
  const CLOSE = 'Connection: close';
  const chunked = `${NOTE.length.toString(16)}${CRLF}${NOTE}${CRLF}0${CRLF}${CRLF}`;

  it.each<[what: string, headers: readonly string[], body: string]>([
    ['a length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], chunked],
    ['chunks and a length', ['Transfer-Encoding: chunked', 'Content-Length: 5'], chunked],
    ['two lengths', ['Content-Length: 5', `Content-Length: ${NOTE.length}`], NOTE],
    ['a list of lengths', [`Content-Length: ${NOTE.length}, 5`], NOTE],
    ['a length with a sign', [`Content-Length: +${NOTE.length}`], NOTE],
    ['a negative length', ['Content-Length: -1'], NOTE],
    ['a length in hex', ['Content-Length: 0x10'], NOTE],
    ['a length beyond any integer', ['Content-Length: 99999999999999999999999'], NOTE],
    ['an encoding that nobody knows', ['Transfer-Encoding: xchunked'], chunked],
    ['chunks that are not the last encoding', ['Transfer-Encoding: chunked, identity'], chunked],
    ['two encodings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked],
    ['a blank before the colon', ['Transfer-Encoding : chunked'], chunked],
    ['a header that goes on in the next line', ['X-A: b', ' Transfer-Encoding: chunked', 'Content-Length: 5'], chunked],
    ['a chunk without a size', ['Transfer-Encoding: chunked'], `${CRLF}${NOTE}${CRLF}0${CRLF}${CRLF}`],
    ['a chunk with a size that is none', ['Transfer-Encoding: chunked'], `zz${CRLF}${NOTE}${CRLF}0${CRLF}${CRLF}`],
    ['a chunk of more than 2^64 bytes', ['Transfer-Encoding: chunked'], `FFFFFFFFFFFFFFFFF${CRLF}${NOTE}`],
    ['a chunk of a negative size', ['Transfer-Encoding: chunked'], `-1${CRLF}${NOTE}${CRLF}0${CRLF}${CRLF}`],
  ])('[GW-FRAMING] %s: 400, and the connection is closed', async (_what, headers, body) => {
    const before = await logged();
    const answer = await say(`${post(witness.session, ...headers)}${body}${head('GET /mcp HTTP/1.1', CLOSE)}`);
    expect(statusesOf(answer)).toEqual(['400']);
    expect(await logged()).toBe(before);
  });

  it.each<[what: string, text: string]>([
    ['HTTP/9.9', `GET /mcp HTTP/9.9${CRLF}Host: localhost${CRLF}${CRLF}`],
    ['the preface of HTTP/2', `PRI * HTTP/2.0${CRLF}${CRLF}SM${CRLF}${CRLF}`],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(300, 'x')],
    ['a method with a control character', `G\x01T /mcp HTTP/1.1${CRLF}Host: localhost${CRLF}${CRLF}`],
    ['no Host', `GET /mcp HTTP/1.1${CRLF}Connection: close${CRLF}${CRLF}`],
    ['a NUL in a value', head('GET /mcp HTTP/1.1', 'Last-Event-ID: a\x00b')],
    ['a lone CR in a value', head('GET /mcp HTTP/1.1', 'Last-Event-ID: a\rX-Injected: 1')],
    ['a control character in a name', head('GET /mcp HTTP/1.1', 'Last\x01Event: a')],
    ['a name that is no ASCII', head('GET /mcp HTTP/1.1', 'L\xe4st-Event-ID: a')],
  ])('[GW-FRAMING] %s is no request: 400', async (_what, text) => {
    expect(statusesOf(await say(text))).toEqual(['400']);
  });

  it('[GW-FRAMING] HTTP/0.9, which names no host, is refused as any request without one', async () => {
    expect(statusesOf(await say(`GET /mcp${CRLF}${CRLF}`))).toEqual(['403']);
  });

  it('[GW-FRAMING] CONNECT is cut, and an upgrade is answered as the plain request that it is', async () => {
    expect(await say(`CONNECT localhost:22 HTTP/1.1${CRLF}Host: localhost${CRLF}${CRLF}`)).toBe('');
    for (const protocol of ['websocket', 'h2c', 'TLS/1.3'])
      expect(
        statusesOf(
          await say(head('GET /mcp HTTP/1.1', 'Accept: */*', 'Connection: Upgrade, close', `Upgrade: ${protocol}`)),
        ),
      ).toEqual(['405']);
  });

  it.each([
    ['POST', 'Content-Type: text/plain', '415'],
    ['POST', 'Content-Type: application/json', '400'],
    ['GET', 'Accept: */*', '405'],
    ['PUT', 'Accept: */*', '405'],
    ['DELETE', 'Accept: */*', '400'],
  ])(
    '[GW-FRAMING] a request in the body of a refused %s (%s) is body, and not done',
    async (method, header, status) => {
      const inner = head('DELETE /mcp HTTP/1.1', `Mcp-Session-Id: ${witness.session}`);
      const outer = head(`${method} /mcp HTTP/1.1`, 'Accept: */*', header, `Content-Length: ${inner.length}`, CLOSE);
      expect(statusesOf(await say(outer + inner))).toEqual([status]);
    },
  );
});

describe('headers that stand twice', () => {
  it.each([
    ['Host', 'localhost', 'evil.example'],
    ['Origin', 'http://localhost', 'https://evil.example'],
    ['Authorization', 'Bearer a', 'Bearer b'],
    ['Content-Type', 'application/json', 'text/plain'],
    ['Content-Encoding', 'identity', 'gzip'],
    ['Mcp-Session-Id', 'own', 'own'],
    ['MCP-Protocol-Version', '2025-11-25', '2025-03-26'],
    ['Last-Event-ID', 'a', 'b'],
  ])('[GW-ONE-HEADER] %s with %s and %s is 400 and names it, in either order', async (name, one, other) => {
    const before = await logged();
    for (const values of [
      [one, other],
      [other, one],
    ]) {
      const lines = values.map((value) => `${name}: ${value.replace('own', witness.session)}`);
      const rest = ['Accept: */*', `Content-Length: ${NOTE.length}`, 'Connection: close'];
      const text = `POST /mcp HTTP/1.1${CRLF}${[...(name === 'Host' ? [] : ['Host: localhost']), ...lines, ...rest].join(CRLF)}`;
      const answer = await say(`${text}${CRLF}${CRLF}${NOTE}`);
      expect(statusesOf(answer)).toEqual(['400']);
      expect(answer).toContain(`The header ${name.toLowerCase()} must stand once`);
    }
    expect(await logged()).toBe(before);
  });

  it('[GW-ONE-HEADER] lists may stand in several lines', async () => {
    const lines = ['Accept: application/json', 'Accept: text/event-stream', `Content-Length: ${NOTE.length}`];
    const text = head(
      'POST /mcp HTTP/1.1',
      `Mcp-Session-Id: ${witness.session}`,
      'Content-Type: application/json',
      'Connection: close',
      ...lines,
    );
    expect(statusesOf(await say(text + NOTE))).toEqual(['202']);
  });
});

describe('a client that does not wait for answers', () => {
  it('[GW-PIPELINE] has 32 requests in the queue of a connection at most; those beyond are 503 and not in the log', async () => {
    const before = await logged();
    const stream = head('GET /mcp HTTP/1.1', `Mcp-Session-Id: ${witness.session}`, 'Accept: text/event-stream');
    // A stream of its own: the witness keeps its.
    const own = await rig.open();
    const note = post(own, `Content-Length: ${NOTE.length}`) + NOTE;
    const open = await logged();
    const socket = await rig.raw(stream.replace(witness.session, own) + note.repeat(100));
    await until(async () => (await logged()) >= open + 32);
    // Everything sent later in this process comes behind what the socket holds.
    expect((await rig.post(NOTE, { 'mcp-session-id': own })).status).toBe(202);
    expect(await logged()).toBe(open + 33);
    expect(open).toBe(before + 1);
    socket.destroy();
  });

  it('[GW-PIPELINE] gives back what queued requests held when its connection is gone: places of streams', async () => {
    let connections = 0;
    const set = (name: string, value: number): void => {
      if (name === 'throughline_gateway_connections') connections = value;
    };
    const small = await createHttpRig({}, { ...noMetrics, set });
    const streams = [];
    for (let count = 0; count < 4; count++) {
      const session = await small.open();
      streams.push(head('GET /mcp HTTP/1.1', `Mcp-Session-Id: ${session}`, 'Accept: text/event-stream'));
    }
    const socket = await small.raw(streams.join(''));
    await until(() => connections === 4);
    socket.destroy();
    await until(() => connections === 0);
    await small.stop();
  });

  it('[GW-PIPELINE] gives back what queued requests held when its connection is gone: room for bodies', async () => {
    const small = await createHttpRig({ maxBodyBytes: 1024 });
    const session = await small.open();
    const stream = head('GET /mcp HTTP/1.1', `Mcp-Session-Id: ${session}`, 'Accept: text/event-stream');
    const half = `${post(session, 'Content-Length: 1024')}{`;
    const sockets: Socket[] = [];
    for (let count = 0; count < 64; count++) sockets.push(await small.raw(stream + half));
    await until(async () => (await small.post('{}')).status === 503);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await small.post('{}')).status === 400);
    await small.stop();
  });

  it('[GW-CONTINUE] is asked for its body only after its head was judged', async () => {
    const expects = ['Expect: 100-continue', `Content-Length: ${NOTE.length}`];
    const socket = await rig.raw(post(witness.session, ...expects, 'Connection: close'));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toBe(`HTTP/1.1 100 Continue${CRLF}${CRLF}`);
    socket.write(NOTE);
    expect(statusesOf(await readAll(socket))).toEqual(['202']);
    for (const [headers, status] of [
      [['Origin: https://evil.example', ...expects], '403'],
      [['Expect: 100-Continue', 'Content-Length: 99000000000'], '413'],
      [['Expect: something-else', 'Content-Length: 0', 'Connection: close'], '417'],
    ] as const) {
      // What it may send next would not be told from the body that it kept: so the connection is closed.
      const next = head('DELETE /mcp HTTP/1.1', `Mcp-Session-Id: ${witness.session}`);
      expect(statusesOf(await say(post(witness.session, ...headers) + (status === '417' ? '' : next)))[0]).toBe(status);
    }
  });
});

describe('session ids and cursors of others', () => {
  const get = (session: string, lastEventId?: string): Promise<Response> =>
    fetch(rig.url, {
      headers: {
        accept: 'text/event-stream',
        'mcp-session-id': session,
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      },
    });

  it('[GW-SESSION] [GW-REFUSED] every cut, every changed character, and another server: 404, for each method', async () => {
    const id = witness.session;
    const changed = (at: number): string => id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);
    const wrong = [
      ...Array.from({ length: 20 }, (_, at) => id.slice(0, 1 + Math.floor((at * (id.length - 1)) / 20))),
      ...Array.from({ length: 20 }, (_, at) => changed(Math.floor((at * id.length) / 20))),
      `${id}x`,
      `${id}.${id}`,
      id.toUpperCase(),
      id.split('.').reverse().join('.'),
      'A'.repeat(8000),
      '....................',
      '__proto__',
      '%00',
    ];
    for (const session of wrong) {
      const asked = [
        await rig.post(NOTE, { 'mcp-session-id': session }),
        await get(session),
        await get(session, 'x'),
        await fetch(rig.url, { method: 'DELETE', headers: { 'mcp-session-id': session } }),
      ];
      expect(
        asked.map(({ status }) => status),
        session,
      ).toEqual([404, 404, 404, 404]);
      for (const response of asked) await response.body?.cancel();
    }
    const two = await createHttpRig({ servers: ['demo', 'other'] });
    const named = await two.open().catch(() => null);
    expect(named).toBeNull();
    const opened = await fetch(`${two.gateway.url}/mcp/demo`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify(call(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })),
    });
    const session = opened.headers.get('mcp-session-id') ?? '';
    expect(opened.status).toBe(200);
    await opened.body?.cancel();
    const headers = { ...HEADERS, 'mcp-session-id': session };
    expect((await fetch(`${two.gateway.url}/mcp/other`, { method: 'POST', headers, body: NOTE })).status).toBe(404);
    expect((await fetch(`${two.gateway.url}/mcp/demo`, { method: 'POST', headers, body: NOTE })).status).toBe(202);
    await two.stop();
  });

  it('[RES-FOREIGN] [GW-REFUSED] the cursor of another session is 400, ends neither, and shows nothing of it', async () => {
    const own = await rig.open();
    const first = await rig.post(call(1, 'tools/call', { secret: 'mine' }), { 'mcp-session-id': own });
    const at = (await rig.backend.inbound()).at(-1)?.offset ?? 0;
    await rig.backend.say(own, { kind: 'request', at }, result(1, 'mine'), { end: true });
    const cursor = lastIdOf(await first.text());
    const swapped = await get(witness.session, cursor);
    const text = await swapped.text();
    expect([swapped.status, JSON.parse(text)]).toEqual([
      400,
      expect.objectContaining({
        error: expect.objectContaining({ data: expect.objectContaining({ reason: 'cursor-foreign' }) }),
      }),
    ]);
    expect(text).not.toContain('mine');
    expect((await get(own, cursor)).status).toBe(204);
  });

  it('[RES-TAMPER] [GW-REFUSED] no cut, changed or made-up cursor is a 5xx, or ends another session than its own', async () => {
    const own = await rig.open();
    const first = await rig.post(call(1), { 'mcp-session-id': own });
    const at = (await rig.backend.inbound()).at(-1)?.offset ?? 0;
    await rig.backend.say(own, { kind: 'request', at }, result(1), { end: true });
    const id = lastIdOf(await first.text());
    const fields = id.split('.');
    const withField = (index: number, value: string): string => fields.with(index, value).join('.');
    const cursors = [
      ...Array.from({ length: 12 }, (_, cut) => id.slice(0, 1 + Math.floor((cut * (id.length - 1)) / 12))),
      ...['0', '-1', '1e3', '00', '9007199254740991', '9007199254740992', '99999999999999999999'].flatMap((number) => [
        withField(1, number),
        withField(2, number),
        withField(4, number),
        withField(3, `r${number}`),
        withField(3, `s${number}`),
        withField(3, `r${number}~1`),
      ]),
      withField(0, 'aaaaaaaaab'),
      withField(5, 'A'.repeat(22)),
      withField(3, `r1~_${'x'.repeat(200)}`),
      'x'.repeat(15_000),
      '__proto__',
      '\u00ff\u00fe',
    ];
    for (const cursor of cursors) {
      const mine = await get(own, cursor);
      expect([cursor, mine.status], cursor).toEqual([cursor, expect.toSatisfy((s: number) => s < 500)]);
      await mine.body?.cancel();
      const theirs = await get(witness.session, cursor);
      expect([cursor, theirs.status], cursor).toEqual([cursor, 400]);
    }
  });
});

describe('bodies', () => {
  const DEEP = '['.repeat(4_000_000);

  it.each<[what: string, body: string | Uint8Array<ArrayBuffer>]>([
    ['nothing', ''],
    ['no JSON', '<xml/>'],
    ['JSON5', "{jsonrpc:'2.0',method:'m',}"],
    ['two documents', `${NOTE}${NOTE}`],
    ['NaN', '{"jsonrpc":"2.0","id":NaN,"method":"m"}'],
    ['a byte order mark', `\uFEFF${NOTE}`],
    ['UTF-16', Uint8Array.from(Buffer.from(NOTE, 'utf16le'))],
    [
      'bytes that are no UTF-8',
      Uint8Array.from([...Buffer.from('{"jsonrpc":"2.0","method":"'), 0xc0, 0xaf, 0x22, 0x7d]),
    ],
    [
      'a surrogate in UTF-8',
      Uint8Array.from([...Buffer.from('{"jsonrpc":"2.0","method":"'), 0xed, 0xa0, 0x80, 0x22, 0x7d]),
    ],
    ['4 MB of brackets', DEEP],
    ['a batch in a batch', `[[${NOTE}]]`],
    ['101 messages', `[${Array<string>(101).fill(NOTE).join()}]`],
    ['100,000 numbers', `[${'1,'.repeat(100_000)}1]`],
    ['an id beyond the integers', '{"jsonrpc":"2.0","id":1e999,"method":"m"}'],
    ['an id of a million digits', `{"jsonrpc":"2.0","id":${'9'.repeat(1_000_000)},"method":"m"}`],
    ['an id that is no integer', '{"jsonrpc":"2.0","id":1.5,"method":"m"}'],
    ['an object as id', '{"jsonrpc":"2.0","id":{"toString":1},"method":"m"}'],
    ['a method that is no text', '{"jsonrpc":"2.0","id":1,"method":{}}'],
    ['__proto__ at the top', '{"jsonrpc":"2.0","id":1,"method":"m","__proto__":{"admin":true}}'],
    ['all of it in __proto__', '{"__proto__":{"jsonrpc":"2.0","id":1,"method":"m"}}'],
    ['constructor at the top', '{"jsonrpc":"2.0","id":1,"method":"m","constructor":{"prototype":{}}}'],
    ['two ids', '{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}'],
    ['two methods', '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}'],
    ['one name written in two ways', '{"jsonrpc":"2.0","id":1,"method":"tools/list","m\\u0065thod":"tools/call"}'],
    ['two tools', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"erase"}}'],
    ['two tokens', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}'],
  ])('[GW-BODY] [GW-TWICE] %s is 400, and nothing of it is in the log', async (_what, body) => {
    const before = await logged();
    const response = await fetch(rig.url, {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': witness.session },
      body,
    });
    const answer = (await response.json()) as { error: { data: { code: string } } };
    expect(response.status).toBe(400);
    expect(['MALFORMED_JSON', 'INVALID_REQUEST']).toContain(answer.error.data.code);
    expect(await logged()).toBe(before);
  });

  it.each<[what: string, body: string]>([
    [
      '__proto__ and constructor in arguments',
      '{"jsonrpc":"2.0","method":"m","params":{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}},"hasOwnProperty":1}}',
    ],
    ['a lone surrogate', '{"jsonrpc":"2.0","method":"m","params":{"a":"\\ud800"}}'],
    [
      'numbers that no double holds',
      '{"jsonrpc":"2.0","method":"m","params":{"a":1e999,"b":123456789012345678901234567890}}',
    ],
    ['two names deep in arguments', '{"jsonrpc":"2.0","method":"m","params":{"arguments":{"x":{"a":1,"a":2}}}}'],
    ['a NUL and line ends in texts', '{"jsonrpc":"2.0","method":"m","params":{"a":"\\u0000\\r\\n\\u2028"}}'],
  ])('[GW-POST] %s is the business of the server: taken, as it came', async (_what, body) => {
    expect((await rig.post(body, { 'mcp-session-id': witness.session })).status).toBe(202);
    const record = (await rig.backend.inbound()).at(-1)?.record;
    expect(Buffer.from(record?.value ?? []).toString()).toBe(body);
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  const BOMB = Buffer.from(`{"jsonrpc":"2.0","method":"m","params":{"a":"${'x'.repeat(50_000_000)}"}}`);

  it('[GW-LIMIT] compressed bodies are 415 and never unpacked, small ones and bombs', async () => {
    const before = await logged();
    for (const [encoding, body] of [
      ['gzip', gzipSync(BOMB)],
      ['x-gzip', gzipSync(NOTE)],
      ['deflate', deflateSync(BOMB)],
      ['br', brotliCompressSync(NOTE)],
      ['zstd', Buffer.from('x')],
      ['gzip, gzip', gzipSync(gzipSync(NOTE))],
      ['GZIP', gzipSync(NOTE)],
    ] as const) {
      const response = await fetch(rig.url, {
        method: 'POST',
        headers: { ...HEADERS, 'mcp-session-id': witness.session, 'content-encoding': encoding },
        body: Uint8Array.from(body),
      });
      const answer = (await response.json()) as { error: { message: string } };
      expect([encoding, response.status, answer.error.message]).toEqual([
        encoding,
        415,
        'Compressed bodies are not served',
      ]);
    }
    expect(await logged()).toBe(before);
  }, 60_000);
});

describe('what is said back', () => {
  const EVIL = 'a\r\nX-Injected: 1\r\n\r\ndata: forged\n\nid: 1';

  it('[GW-INJECT] nothing that a client wrote makes a line of its own in a head, or on a stream', async () => {
    const bodies = [
      call(EVIL),
      call(EVIL, EVIL),
      { jsonrpc: '2.0', id: EVIL, method: 'initialize', params: { protocolVersion: EVIL } },
      { jsonrpc: '2.0', id: 1, method: 'm', [EVIL]: 1 },
      { jsonrpc: '2.0', id: EVIL, method: 'm', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': EVIL } } },
    ];
    for (const session of ['none', witness.session]) {
      for (const body of bodies.slice(session === 'none' ? 0 : 3)) {
        const text = JSON.stringify(body);
        const answer = await say(post(session, `Content-Length: ${text.length}`, 'Connection: close') + text);
        const [top = '', ...rest] = answer.split('\r\n\r\n');
        expect(statusesOf(answer)).toEqual([expect.stringMatching(/^4/)]);
        expect(top).not.toMatch(/^X-Injected/im);
        expect(rest.join('')).not.toMatch(/^(X-Injected|data: forged)/m);
      }
    }
    for (const target of ['/mcp/%0d%0aX-Injected:%201', '/%0aX-Injected:1', '/mcp?x=%0d%0aX-Injected:%201'])
      expect(await say(head(`GET ${target} HTTP/1.1`, 'Accept: */*', 'Connection: close'))).not.toMatch(
        /^X-Injected/im,
      );
    const own = await rig.open();
    const stream = await rig.post(call(EVIL), { 'mcp-session-id': own });
    const at = (await rig.backend.inbound()).at(-1)?.offset ?? 0;
    await rig.backend.say(own, { kind: 'request', at }, result(EVIL, { text: EVIL }), { end: true });
    const lines = (await stream.text()).split('\n').filter((line) => line !== '');
    expect(lines.filter((line) => !/^(id: \S+|retry: \d+|data: (\{.*\})?|:.*)$/.test(line))).toEqual([]);
    expect(lines.filter((line) => line.startsWith('data: {'))).toEqual([
      `data: ${JSON.stringify(result(EVIL, { text: EVIL }))}`,
    ]);
  });
});

describe('connections that are half there', () => {
  it('[GW-STREAM] a client that closes its half of a stream gives its place back', async () => {
    const small = await createHttpRig({ maxConnections: 1 });
    const session = await small.open();
    const stream = head('GET /mcp HTTP/1.1', `Mcp-Session-Id: ${session}`, 'Accept: text/event-stream');
    const socket = await small.raw(stream);
    await once(socket, 'data');
    expect((await small.post(call(1), { 'mcp-session-id': session })).status).toBe(503);
    socket.end();
    await until(async () => {
      const response = await small.post(call(1), { 'mcp-session-id': session });
      await response.body?.cancel();
      return response.status === 200;
    });
    await small.stop();
  });
});
