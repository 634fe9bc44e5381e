/** The status codes of MCP over HTTP, and requests of later revisions: docs/reference/mcp-rules.md. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, initialize, NOTE } from '../testing/core-rig.ts';
import { createHttpRig } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';

let rig: HttpRig;
beforeAll(async () => {
  rig = await createHttpRig();
});
afterAll(() => rig.stop());

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'];

describe.each(REVISIONS)('in a session of %s', (version) => {
  let session: Record<string, string>;
  beforeAll(async () => {
    session = { 'mcp-session-id': await rig.open(version), 'mcp-protocol-version': version };
  });

  it.each([
    ['an Accept without text/event-stream', { accept: 'application/json' }, call(1), 406, -32000],
    ['an Accept without application/json', { accept: 'text/event-stream' }, call(1), 406, -32000],
    ['another Content-Type', { 'content-type': 'text/plain' }, call(1), 415, -32000],
    ['a body that is no JSON', {}, '{"jsonrpc":', 400, -32700],
    ['a body that is no JSON-RPC', {}, { id: 1, method: 'ping' }, 400, -32600],
    ['a second initialize', {}, initialize('2025-11-25'), 400, -32600],
  ])('[MCP-C] %s is %d', async (_what, headers, body, status, code) => {
    const before = (await rig.backend.inbound()).length;
    const response = await rig.post(body, { ...session, ...headers });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code } });
    expect((await rig.backend.inbound()).length).toBe(before);
  });

  it('[MCP-C] other methods are 405 and name those that are served', async () => {
    for (const method of ['PUT', 'PATCH', 'HEAD']) {
      const response = await fetch(rig.url, { method, headers: session });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, GET, DELETE, OPTIONS']);
    }
  });

  it('[MCP-E7] a foreign Origin is 403 on every method, an absent one is not', async () => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? { body: JSON.stringify(NOTE) } : {};
      const headers = { ...session, accept: '*/*', 'content-type': 'application/json' };
      const foreign = await fetch(rig.url, {
        method,
        ...body,
        headers: { ...headers, origin: 'https://evil.example' },
      });
      expect([method, foreign.status]).toEqual([method, 403]);
      expect(await foreign.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: {} });
      if (method === 'DELETE') continue;
      const absent = await fetch(rig.url, { method, ...body, headers });
      expect([method, absent.ok]).toEqual([method, true]);
      await absent.body?.cancel();
    }
  });
});

it('[MCP-C] without a token, or with a wrong one, it is 401 with a challenge, on every method', async () => {
  const tokens = [{ principal: 'a', sha256: createHash('sha256').update('right').digest('hex') }];
  const guarded = await createHttpRig({ tokens });
  for (const method of ['POST', 'GET', 'DELETE']) {
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const response = await fetch(guarded.url, { method, headers });
      expect([method, response.status]).toEqual([method, 401]);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  }
  await guarded.stop();
});

const META = 'io.modelcontextprotocol/protocolVersion';
const discover = (version: unknown, id: number | undefined = 1): object => ({
  jsonrpc: '2.0',
  ...(id === undefined ? {} : { id }),
  method: 'server/discover',
  params: { _meta: { [META]: version, 'io.modelcontextprotocol/clientCapabilities': {} } },
});

describe('a request of a revision after 2025-11-25', () => {
  const refused = (requested: string, id: number | null): object => ({
    jsonrpc: '2.0',
    id,
    error: {
      code: -32022,
      data: { code: 'ERA_UNSUPPORTED', supported: ['2025-03-26', '2025-06-18', '2025-11-25'], requested },
    },
  });

  const inInitialize = { ...discover('2026-07-28'), method: 'initialize' };
  it.each([
    ['by _meta', discover('2026-07-28'), {}, '2026-07-28'],
    ['by _meta and header', discover('2026-07-28'), { 'mcp-protocol-version': '2026-07-28' }, '2026-07-28'],
    ['by header', call(1, 'tools/list'), { 'mcp-protocol-version': '2026-07-28' }, '2026-07-28'],
    ['of a later one', discover('2027-12-31'), {}, '2027-12-31'],
    ['with a name that is none', discover('x'.repeat(1000)), {}, 'x'.repeat(32)],
    ['with no text for a name', discover({}), {}, ''],
    ['in an initialize', inInitialize, {}, '2026-07-28'],
  ])(
    '[GW-VERSION] [MCP-V3] %s is 400 and -32022, with what is supported and what was asked for',
    async (_how, body, headers, requested) => {
      for (const session of [{}, { 'mcp-session-id': await rig.open() }, { 'mcp-session-id': 'nonsense' }]) {
        const response = await rig.post(body, { ...headers, ...session });
        expect([response.status, response.headers.get('mcp-session-id')]).toEqual([400, null]);
        expect(await response.json()).toMatchObject(refused(requested, 1));
      }
    },
  );

  it('[GW-VERSION] as a notification or in a batch it is refused as well, and nothing is appended', async () => {
    const session = { 'mcp-session-id': await rig.open('2025-03-26') };
    const before = (await rig.backend.inbound()).length;
    const note = await rig.post({ ...discover('2026-07-28'), id: undefined }, session);
    expect([note.status, await note.json()]).toMatchObject([400, refused('2026-07-28', null)]);
    const batch = await rig.post([call(7, 'ping'), discover('2026-07-28', 8)], session);
    expect([batch.status, await batch.json()]).toMatchObject([400, refused('2026-07-28', 8)]);
    expect((await rig.backend.inbound()).length).toBe(before);
  });

  it('[GW-VERSION] a revision with sessions in _meta changes nothing', async () => {
    const session = { 'mcp-session-id': await rig.open() };
    const message = { ...NOTE, params: { _meta: { [META]: '2025-11-25' } } };
    expect((await rig.post(message, session)).status).toBe(202);
    const without = await rig.post(message);
    expect(await without.json()).toMatchObject({ error: { data: { code: 'SESSION_REQUIRED' } } });
  });

  it('[GW-VERSION] [GW-INIT] an initialize that only a header calls later is a handshake all the same', async () => {
    const response = await rig.post(initialize('2026-07-28'), { 'mcp-protocol-version': '2026-07-28' });
    expect(response.status).toBe(200);
    expect(response.headers.get('mcp-session-id')).not.toBeNull();
    await response.body?.cancel();
  });
});
