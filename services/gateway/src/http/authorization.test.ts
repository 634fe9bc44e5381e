/** Authorization through real sockets: every method, the metadata, what browsers may read, and streams whose token ends. */
import { createHash } from 'node:crypto';
import { systemClock } from '@throughline/log';
import { STANDALONE } from '@throughline/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { progress, result } from '../testing/backend.ts';
import { call, initialize } from '../testing/core-rig.ts';
import type { GatewayConfig } from '../config.ts';
import { createHttpRig, HEADERS, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';
import { lastIdOf, messagesOf, readSse } from '../testing/sse-reading.ts';
import { ISSUER, makeTokens, PUBLIC_URL } from '../testing/token-maker.ts';
import type { TokenMaker } from '../testing/token-maker.ts';

const METADATA = '/.well-known/oauth-protected-resource';

let maker: TokenMaker;
let rig: HttpRig;

beforeAll(async () => {
  maker = await makeTokens(systemClock.wallMs());
  rig = await createHttpRig({
    issuers: [maker.issuer()],
    requiredScopes: ['mcp'],
    publicUrl: PUBLIC_URL,
    clockToleranceMs: 0,
    allowedHosts: ['evil.example'],
    allowedOrigins: ['https://app.example.com'],
  });
}, 60_000);
afterAll(() => rig.stop());

async function bearer(claims: Readonly<Record<string, unknown>> = {}): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await maker.sign({ scope: 'mcp', ...claims })}` };
}

/** Wall-clock seconds from now. */
const inSeconds = (seconds: number): number => systemClock.wallMs() / 1000 + seconds;

async function send(
  method: string,
  headers: Readonly<Record<string, string>>,
  path = '/mcp',
): Promise<{
  readonly status: number;
  readonly challenge: string | null;
  readonly code: unknown;
  readonly text: string;
}> {
  const response = await fetch(`${rig.gateway.url}${path}`, {
    method,
    headers: { ...HEADERS, ...headers },
    ...(method === 'POST' ? { body: JSON.stringify(call(7)) } : {}),
  });
  const text = response.status === 200 ? '' : await response.text();
  if (response.status === 200) await response.body?.cancel();
  const { error } = (text === '' ? {} : JSON.parse(text)) as {
    readonly error?: { readonly data: { readonly code: string } };
  };
  return { status: response.status, challenge: response.headers.get('www-authenticate'), code: error?.data.code, text };
}

describe('every request', () => {
  it.each(['POST', 'GET', 'DELETE', 'PUT'])(
    '[AUTH-EVERY] [AUTH-CHALLENGE] %s without a good token is 401, whatever else it is',
    async (method) => {
      const session = { 'mcp-session-id': await rig.open('2025-11-25', await bearer()) };
      const where = `resource_metadata="${PUBLIC_URL}${METADATA}/mcp", scope="mcp"`;
      expect(await send(method, session)).toMatchObject({
        status: 401,
        challenge: `Bearer ${where}`,
        code: 'UNAUTHORIZED',
      });
      const expired = await send(method, { ...session, ...(await bearer({ exp: inSeconds(-1) })) });
      expect(expired).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
      expect(expired.challenge).toBe(
        `Bearer error="invalid_token", error_description="The bearer token has expired", ${where}`,
      );
      const foreign = await send(method, { ...session, ...(await bearer({ aud: 'https://other.example' })) });
      expect(foreign).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
    },
    60_000,
  );

  it.each(['POST', 'GET', 'DELETE'])(
    '[AUTH-SCOPE] %s with a token that lacks a scope is 403 and says which',
    async (method) => {
      const session = { 'mcp-session-id': await rig.open('2025-11-25', await bearer()) };
      const poor = await send(method, { ...session, ...(await bearer({ scope: 'email' })) });
      expect(poor).toMatchObject({ status: 403, code: 'INSUFFICIENT_SCOPE' });
      expect(poor.challenge).toMatch(/^Bearer error="insufficient_scope", .*scope="mcp"$/);
    },
    60_000,
  );

  it.each(['POST', 'GET', 'DELETE'])(
    '[AUTH-QUERY] %s with a token in the URL is 400, though the header has a good one',
    async (method) => {
      const authorization = await bearer();
      const token = authorization['authorization']?.slice('Bearer '.length) ?? '';
      const answer = await send(method, authorization, `/mcp?access_token=${token}`);
      expect(answer).toMatchObject({ status: 400, code: 'INVALID_REQUEST' });
      expect(answer.text).not.toContain(token);
    },
    60_000,
  );

  it('[AUTH-AUDIENCE] a token for the endpoint is taken at either of its paths', async () => {
    const good = await bearer({ aud: `${PUBLIC_URL}/mcp/demo` });
    const session = await rig.open('2025-11-25', good);
    for (const path of ['/mcp', '/mcp/demo'])
      expect((await send('POST', { ...good, 'mcp-session-id': session }, path)).status).toBe(200);
    const challenged = await send('POST', { 'mcp-session-id': session }, '/mcp/demo');
    expect(challenged.challenge).toContain(`${PUBLIC_URL}${METADATA}/mcp/demo"`);
  }, 60_000);

  it('[AUTH-PUBLIC-URL] what a client is told comes from the configuration, whatever Host and forwarding headers say', async () => {
    const socket = await rig.raw(
      'GET /mcp HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\nConnection: close\r\n\r\n',
    );
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await until(() => text.includes('\r\n\r\n'));
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toContain(`resource_metadata="${PUBLIC_URL}${METADATA}/mcp"`);
    expect(text).not.toContain('evil.example');
    socket.destroy();
  }, 60_000);
});

describe('sessions', () => {
  it('[AUTH-SESSION] belong to issuer and subject: a renewed token goes on, to another subject there is no such session', async () => {
    const session = await rig.open('2025-11-25', await bearer({ jti: 'first' }));
    const own = { 'mcp-session-id': session };
    expect((await send('POST', { ...own, ...(await bearer({ jti: 'second' })) })).status).toBe(200);
    const stranger = await bearer({ sub: 'mallory' });
    const unknown = { 'mcp-session-id': `${session.slice(0, -3)}AAA` };
    for (const method of ['POST', 'GET', 'DELETE']) {
      const stolen = await send(method, { ...own, ...stranger });
      expect(stolen).toEqual(await send(method, { ...unknown, ...stranger }));
      expect([method, stolen.status, stolen.code]).toEqual([method, 404, 'SESSION_NOT_FOUND']);
    }
    expect((await send('POST', { ...own, ...(await bearer()) })).status).toBe(200);
  }, 60_000);

  it('[AUTH-SESSION] a stolen cursor is worth as little, and ends nothing', async () => {
    const session = await rig.open('2025-11-25', await bearer());
    const own = { 'mcp-session-id': session };
    const stream = await rig.post(call(8), { ...own, ...(await bearer()) });
    const text = new TextDecoder().decode((await stream.body!.getReader().read()).value);
    const resume = { ...own, 'last-event-id': lastIdOf(text) };
    const stolen = await send('GET', { ...resume, ...(await bearer({ sub: 'mallory' })) });
    expect([stolen.status, stolen.code]).toEqual([404, 'SESSION_NOT_FOUND']);
    expect((await send('GET', { ...resume, ...(await bearer()) })).status).toBe(200);
  }, 60_000);

  it('[AUTH-PRINCIPAL] records name the principal by an HMAC, the same for each of its tokens', async () => {
    await rig.open('2025-11-25', await bearer({ jti: '1' }));
    await rig.open('2025-11-25', await bearer({ jti: '2' }));
    await rig.open('2025-11-25', await bearer({ sub: 'mallory' }));
    const records = (await rig.backend.inbound()).slice(-3);
    const tags = records.map(({ body }) => (body.type === 'message' ? body.principal : ''));
    expect(tags[0]).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(tags[1]).toBe(tags[0]);
    expect(tags[2]).not.toBe(tags[0]);
  }, 60_000);
});

describe('the metadata', () => {
  it('[AUTH-METADATA] are served for the gateway and each endpoint, without a token, to every web page', async () => {
    for (const path of ['', '/mcp', '/mcp/demo']) {
      const response = await fetch(`${rig.gateway.url}${METADATA}${path}`, {
        headers: { origin: 'https://any.example' },
      });
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
      expect(await response.json()).toEqual({
        resource: `${PUBLIC_URL}${path}`,
        authorization_servers: [ISSUER],
        bearer_methods_supported: ['header'],
        scopes_supported: ['mcp'],
      });
    }
    const preflight = await fetch(`${rig.gateway.url}${METADATA}/mcp`, {
      method: 'OPTIONS',
      headers: { origin: 'https://any.example', 'access-control-request-headers': 'mcp-protocol-version' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('MCP-Protocol-Version');
  }, 60_000);

  it.each(['https://example.com/pre/fix', 'https://example.com/a(b)*:c/'])(
    '[AUTH-METADATA] under the public URL %s they are also where RFC 9728 puts them: before its path',
    async (publicUrl) => {
      const under = await createHttpRig({ issuers: [maker.issuer()], publicUrl });
      const { pathname } = new URL(publicUrl.replace(/\/$/, ''));
      for (const path of ['', '/mcp', '/mcp/demo'])
        for (const place of [`${METADATA}${path}`, `${METADATA}${pathname}${path}`]) {
          const response = await fetch(`${under.gateway.url}${place}`);
          expect([place, response.status]).toEqual([place, 200]);
          expect(await response.json()).toMatchObject({ resource: `https://example.com${pathname}${path}` });
        }
      for (const place of [`${METADATA}/other/mcp`, `${METADATA}${pathname.toUpperCase()}/mcp`, `${METADATA}/MCP`])
        expect((await fetch(`${under.gateway.url}${place}`)).status).toBe(404);
      await under.stop();
    },
    60_000,
  );

  it('[AUTH-METADATA] other methods are 405, other paths 404, and without an issuer there are none', async () => {
    expect((await fetch(`${rig.gateway.url}${METADATA}`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${rig.gateway.url}${METADATA}/mcp/other`)).status).toBe(404);
    const open = await createHttpRig();
    expect((await fetch(`${open.gateway.url}${METADATA}`)).status).toBe(404);
    await open.stop();
  }, 60_000);

  it('[AUTH-CHALLENGE] a web page of an allowed origin may read the challenge', async () => {
    const response = await fetch(rig.url, {
      method: 'POST',
      headers: { ...HEADERS, origin: 'https://app.example.com' },
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
    expect(response.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate');
  }, 60_000);
});

describe('a stream whose token ends', () => {
  /** A gateway that treats them so; its one session, and a call that runs, both with a token that ends in 3 s. */
  async function start(expiredStreams: GatewayConfig['expiredStreams'], version = '2025-11-25') {
    const config = { issuers: [maker.issuer()], publicUrl: PUBLIC_URL, clockToleranceMs: 0, expiredStreams };
    const strict = await createHttpRig(config);
    const session = await strict.open(version, await bearer());
    const own = { ...HEADERS, 'mcp-session-id': session, 'mcp-protocol-version': version };
    const end = inSeconds(3);
    const short = await bearer({ exp: end });
    const standalone = await fetch(strict.url, { headers: { ...own, ...short } });
    const stream = await strict.post(call(1), { ...own, ...short });
    const at = { kind: 'request', at: (await strict.backend.inbound()).at(-1)!.offset } as const;
    const answer = (): Promise<unknown> => strict.backend.say(session, at, result(1), { end: true });
    return { strict, session, own, standalone, stream, at, answer, hasEnded: () => inSeconds(0) > end + 1 };
  }

  it('[AUTH-EXPIRY] ends after it was told when to come back, and another token resumes it without loss', async () => {
    const { strict, session, own, standalone, stream, at, answer } = await start('end');
    await strict.backend.say(session, at, progress(1));
    const text = await stream.text();
    expect(messagesOf(text)).toHaveLength(1);
    expect(readSse(text).at(-1)?.retry).toBeGreaterThan(0);
    await standalone.text();

    await answer();
    const resumed = await fetch(strict.url, {
      headers: { ...own, ...(await bearer()), 'last-event-id': lastIdOf(text) },
    });
    expect(messagesOf(await resumed.text()).map(({ data }) => JSON.parse(data) as unknown)).toEqual([result(1)]);
    await strict.stop();
  }, 60_000);

  it('[AUTH-EXPIRY] of a call whose client could not resume is waited for, even where all end', async () => {
    const { strict, standalone, stream, answer } = await start('end', '2025-03-26');
    await standalone.text();
    await answer();
    expect(messagesOf(await stream.text())).toHaveLength(1);
    await strict.stop();
  }, 60_000);

  it('[AUTH-EXPIRY] of a call goes on to its answer by default, while one that only listens ends', async () => {
    const { strict, session, at, standalone, stream, answer, hasEnded } = await start('finish-calls');
    await standalone.text();
    await until(hasEnded);
    await strict.backend.say(session, at, progress(1));
    await answer();
    expect(messagesOf(await stream.text())).toHaveLength(2);
    await strict.stop();
  }, 60_000);

  it('[AUTH-EXPIRY] goes on where the configuration says so', async () => {
    const { strict, session, standalone, hasEnded } = await start('keep');
    await until(hasEnded);
    const said = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    await strict.backend.say(session, STANDALONE, said);
    const reader = standalone.body!.getReader();
    let text = '';
    while (messagesOf(text).length === 0) text += new TextDecoder().decode((await reader.read()).value);
    expect(messagesOf(text)).toHaveLength(1);
    await reader.cancel();
    await strict.stop();
  }, 60_000);
});

describe('a stream whose token is revoked', () => {
  const hashed = (token: string): string => createHash('sha256').update(token).digest('hex');

  it.each([
    ['finish-calls', ['ended', 'runs']],
    ['end', ['ended', 'ended']],
    ['keep', ['runs', 'runs']],
  ] as const)(
    '[AUTH-REVOKED] is treated as one whose token has expired: %s',
    async (expiredStreams, expected) => {
      const tokens = ['alice', 'bob'].map((principal) => ({ principal, sha256: hashed(`tok-${principal}`) }));
      const listed = await createHttpRig({ tokens, expiredStreams });
      const of = (name: string): Record<string, string> => ({ authorization: `Bearer tok-${name}` });
      const session = await listed.open('2025-11-25', of('alice'));
      const own = { ...HEADERS, 'mcp-session-id': session };
      const standalone = await fetch(listed.url, { headers: { ...own, ...of('alice') } });
      const stream = await listed.post(call(1), { ...own, ...of('alice') });
      const at = { kind: 'request', at: (await listed.backend.inbound()).at(-1)!.offset } as const;
      await listed.backend.say(session, at, progress(1));
      const states = ['runs', 'runs'];
      const ends = [standalone, stream].map(async (response, index) => {
        const text = await response.text().catch(() => '');
        states[index] = 'ended';
        return text;
      });
      listed.gateway.changeAccess({ kind: 'tokens', tokens: tokens.slice(1) });
      expect((await listed.post(call(2), { ...own, ...of('alice') })).status).toBe(401);
      // Bob notices nothing.
      await listed.open('2025-11-25', of('bob'));
      await until(() => states.join() === expected.join());
      await listed.backend.say(session, at, result(1), { end: true });
      if (expected[1] === 'runs') expect(messagesOf((await ends[1]) ?? '')).toHaveLength(2);
      expect(states[0]).toBe(expected[0]);
      await listed.stop();
    },
    60_000,
  );
});

it('[SID-ROTATE] secrets that are replaced count at once: the first signs, all verify, and none that is gone', async () => {
  const secrets = [1, 2].map((byte) => new Uint8Array(32).fill(byte));
  const [before, after] = secrets as [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>];
  const rotated = await createHttpRig({ secrets: [before] });
  const old = await rotated.open();
  const statusOf = async (session: string): Promise<number> => {
    const said = { jsonrpc: '2.0', method: 'notifications/initialized' };
    return (await rotated.post(said, { 'mcp-session-id': session })).status;
  };
  rotated.gateway.changeAccess({ kind: 'secrets', secrets: [after, before] });
  const fresh = await rotated.open();
  expect([await statusOf(old), await statusOf(fresh)]).toEqual([202, 202]);
  rotated.gateway.changeAccess({ kind: 'secrets', secrets: [after] });
  expect([await statusOf(old), await statusOf(fresh)]).toEqual([404, 202]);
  await rotated.stop();
}, 60_000);

it('[AUTH-METADATA] a gateway of which nobody is asked for a token opens sessions as before', async () => {
  const open = await createHttpRig();
  expect((await open.post(initialize('2025-11-25'), { authorization: 'Bearer whatever' })).status).toBe(200);
  await open.stop();
}, 60_000);
