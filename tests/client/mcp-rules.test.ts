/** What MCP says of clients over HTTP, held by the resumable transport: docs/reference/mcp-rules.md. */
import { waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { connectRig, INITIALIZE, makeRig, note, result } from './client-rig.ts';
import { json, page, ScriptedServer } from './scripted-server.ts';

const COMPATIBLE = { policy: 'compatible' } as const;

/** Answers each call by JSON, takes everything else, and offers no standalone stream. */
function plainServer(): ScriptedServer {
  const server = new ScriptedServer();
  server.answer = ({ method, message }) =>
    method === 'GET' || method === 'DELETE'
      ? new Response(null, { status: 405 })
      : message.method !== undefined && message.id !== undefined
        ? json(result(message.id))
        : new Response(null, { status: 202 });
  return server;
}

it('[MCP-P1] each message is a POST of its own that accepts JSON and event streams', async () => {
  const server = plainServer();
  const rig = await connectRig(COMPATIBLE, server);
  await Promise.all([rig.call(1), rig.call(2), rig.transport.send({ jsonrpc: '2.0', method: 'notifications/x' })]);
  const posts = server.asked.filter(({ method }) => method === 'POST');
  expect(posts).toHaveLength(5);
  for (const { message, headers } of posts) {
    expect(Array.isArray(message)).toBe(false);
    expect(headers.get('accept')).toBe('application/json, text/event-stream');
    expect(headers.get('content-type')).toBe('application/json');
  }
});

it('[MCP-P3] a response is taken as JSON and as an event stream', async () => {
  const server = new ScriptedServer();
  server.answer = ({ method, message }) =>
    method === 'GET'
      ? new Response(null, { status: 405 })
      : message.id === 1
        ? json(result(1, { by: 'json' }))
        : server.sse().event('a', result(message.id, { by: 'sse' }));
  const rig = await connectRig(COMPATIBLE, server);
  expect((await rig.call(1)).result).toEqual({ by: 'json' });
  expect((await rig.call(2)).result).toEqual({ by: 'sse' });
});

it('[MCP-P5] initialize is never cancelled; whoever gives it up waits no longer', async () => {
  const server = new ScriptedServer();
  const handshake = server.sse();
  server.onInitialize = () => handshake;
  const rig = makeRig(COMPATIBLE, server);
  await rig.transport.start();
  await rig.transport.send(INITIALIZE);
  await server.until('initialize');
  const params = { requestId: INITIALIZE.id, reason: 'too late' };
  await rig.transport.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
  await waitUntil('its stream is let go', () => handshake.isCancelled);
  expect(server.of('notifications/cancelled')).toEqual([]);
  expect(rig.got).toEqual([]);
});

describe('the headers of a session', () => {
  it('[MCP-S2] [MCP-V1] once issued, its id and its revision are on every POST, GET and DELETE', async () => {
    const server = new ScriptedServer();
    const streams: string[] = [];
    server.answer = ({ method, message, headers }) => {
      if (method === 'DELETE') return new Response(null, { status: 204 });
      if (message.method === 'tools/call') return server.sse().event('a', note(1)).end();
      if (method !== 'GET') return new Response(null, { status: 202 });
      streams.push(headers.get('last-event-id') ?? '');
      return headers.has('last-event-id') ? server.sse().event('b', result(1)) : server.sse();
    };
    const rig = await connectRig(COMPATIBLE, server);
    await server.until('GET');
    await rig.call(1);
    await rig.transport.send({ jsonrpc: '2.0', method: 'notifications/x' });
    await rig.transport.terminateSession();
    const [first, ...later] = server.asked;
    expect(first?.headers.get('mcp-session-id')).toBeNull();
    expect(streams.sort()).toEqual(['', 'a']);
    expect(new Set(later.map(({ method }) => method))).toEqual(new Set(['POST', 'GET', 'DELETE']));
    for (const { headers } of later) {
      expect(headers.get('mcp-session-id')).toBe('session-1');
      expect(headers.get('mcp-protocol-version')).toBe('2025-11-25');
    }
  });

  it('[MCP-S4] after 404 a new initialize is sent without the id', async () => {
    const server = plainServer();
    const { answer } = server;
    let isGone = false;
    server.answer = (asked) =>
      isGone && asked.headers.get('mcp-session-id') === 'session-1' ? page(404) : answer(asked);
    const rig = await connectRig(COMPATIBLE, server);
    await server.until('GET');
    isGone = true;
    expect((await rig.call(1)).result).toEqual({ ok: true });
    const [, again] = server.of('initialize');
    expect([again?.headers.get('mcp-session-id'), again?.headers.get('mcp-protocol-version')]).toEqual([null, null]);
    expect(again?.message).toMatchObject({ params: INITIALIZE.params });
    expect(server.of('tools/call').map(({ headers }) => headers.get('mcp-session-id'))).toEqual([
      'session-1',
      'session-2',
    ]);
  });

  it.each([200, 204, 405, 404])('[MCP-S5] terminateSession is DELETE, and %d is an answer to it', async (status) => {
    const server = plainServer();
    const { answer } = server;
    server.answer = (asked) => (asked.method === 'DELETE' ? new Response(null, { status }) : answer(asked));
    const rig = await connectRig(COMPATIBLE, server);
    await rig.transport.terminateSession();
    const ended = server.asked.filter(({ method }) => method === 'DELETE');
    expect(ended.map(({ headers }) => headers.get('mcp-session-id'))).toEqual(['session-1']);
    expect(rig.transport.sessionId).toBeUndefined();
  });

  it('[MCP-E8] the id of a session is in no error that the application may show', async () => {
    const server = plainServer();
    server.answer = ({ method }) => page(method === 'GET' ? 405 : 404);
    server.onInitialize = (asked) =>
      server.sessions++ === 0
        ? json(
            { ...result(asked.message.id, { protocolVersion: '2025-11-25', capabilities: {} }) },
            { 'Mcp-Session-Id': 's3cret' },
          )
        : page(500);
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 300 }, server);
    const { error } = await rig.call(1);
    const shown = [
      error?.message,
      JSON.stringify(error?.data),
      ...rig.errors.map((each) => `${each.message} ${each.stack}`),
    ];
    expect(rig.errors.length).toBeGreaterThan(0);
    for (const text of shown) expect(text).not.toContain('s3cret');
  });
});

it('[MCP-R2] [MCP-E2] [MCP-E3] [MCP-E4] a stream that the server closed goes on by GET with its newest id, not before the time asked for', async () => {
  const server = new ScriptedServer();
  let polls = 0;
  server.answer = ({ method, headers }) => {
    if (method === 'GET' && !headers.has('last-event-id')) return new Response(null, { status: 405 });
    if (method === 'POST') return server.sse().raw('id: prime\nretry: 150\ndata: \n\n').end();
    return ++polls === 1 ? server.sse().event('a', note(1)).end() : server.sse().event('b', result(1));
  };
  const rig = await connectRig(COMPATIBLE, server);
  await rig.call(1);
  const resumes = server.of('GET').filter(({ headers }) => headers.has('last-event-id'));
  expect(resumes.map(({ headers }) => headers.get('last-event-id'))).toEqual(['prime', 'a']);
  const [post] = server.of('tools/call');
  expect(resumes[0]!.atMs - post!.atMs).toBeGreaterThanOrEqual(149);
});
