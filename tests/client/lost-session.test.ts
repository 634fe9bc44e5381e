import { setTimeout as pause } from 'node:timers/promises';
import { waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { connectRig, note, result } from './client-rig.ts';
import { json, page, ScriptedServer } from './scripted-server.ts';
import type { Asked, Stream } from './scripted-server.ts';

const gone = (): Response => page(404);
const request = (id: number, method = 'elicitation/create'): object => ({ jsonrpc: '2.0', id, method, params: {} });

/** The session `session-1` can be declared gone; the ones after it serve. */
function serverWithOneLoss(): ScriptedServer & { isGone: boolean; streams: Stream[] } {
  const server = Object.assign(new ScriptedServer(), { isGone: false, streams: [] as Stream[] });
  server.answer = (asked: Asked) => {
    if (server.isGone && asked.headers.get('mcp-session-id') === 'session-1') return gone();
    if (asked.method === 'POST' && asked.message.id === undefined) return new Response(null, { status: 202 });
    if (asked.message.method === 'tools/slow' || asked.method === 'GET') {
      const stream = server.sse();
      server.streams.push(stream);
      return stream;
    }
    return json(result(asked.message.id));
  };
  return server;
}

describe('a session that is lost', () => {
  it('[CLIENT-PENDING] everything pending in it fails first, in both directions, then the application is told', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({ reinitialize: 'manual' }, server);
    await server.until('GET');
    for (const id of [1, 2]) await rig.transport.send({ jsonrpc: '2.0', id, method: 'tools/slow', params: {} });
    await waitUntil('the streams', () => server.streams.length === 3);
    server.streams[1]!.event('x', request(70)).event('y', request(71));
    await waitUntil('the requests', () => rig.got.length === 2);
    await rig.transport.send({ jsonrpc: '2.0', id: 71, result: {} });
    server.isGone = true;
    server.streams[0]!.cut();
    await waitUntil('the loss', () => rig.lost.length === 1);
    expect(rig.heard.slice(2)).toEqual(['error 1', 'error 2', 'notifications/cancelled', 'lost']);
    expect(rig.got.slice(2, 4).map(({ error }) => error?.data)).toEqual(
      [1, 2].map(() => ({
        type: 'ResumptionRejected',
        code: 'RESUMPTION_REJECTED',
        reason: 'session-invalid',
        action: 'reinitialize',
        mayHaveRun: true,
      })),
    );
    expect(rig.got[4]?.params?.requestId).toBe(70);
    expect(rig.lost[0]).toMatchObject({
      sessionId: 'session-1',
      failedCalls: [
        { id: 1, method: 'tools/slow', mayHaveRun: true },
        { id: 2, method: 'tools/slow', mayHaveRun: true },
      ],
      cancelledRequests: [70],
    });
    expect(rig.errors.at(-1)).toMatchObject({ name: 'ResumptionRejected', reason: 'session-invalid' });
  });

  it('[CLIENT-PENDING] a late answer to a request of the lost session goes nowhere', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({}, server);
    await server.until('GET');
    server.streams[0]!.event('x', request(0));
    await waitUntil('the request', () => rig.got.length === 1);
    server.isGone = true;
    server.streams[0]!.cut();
    await waitUntil('the new session', () => rig.restored.length === 1);
    await rig.transport.send({ jsonrpc: '2.0', id: 0, result: {} });
    await server.until('GET', 2);
    // The new server counts from 0 as well: its request is another one for the application.
    await waitUntil('the new stream', () => server.streams.length === 2);
    server.streams[1]!.event('y', request(0));
    const asked = await waitUntil('the other request', () => rig.got.find(({ id }) => id !== undefined && id !== 0));
    await rig.transport.send({ jsonrpc: '2.0', id: asked.id, result: { for: 'the second' } });
    const answers = server.asked.filter(({ message }) => message.result !== undefined);
    expect(answers.map(({ message }) => [message.id, message.result])).toEqual([[0, { for: 'the second' }]]);
    expect(answers[0]?.headers.get('mcp-session-id')).toBe('session-2');
  });

  it('[CLIENT-REINIT] is replaced by the same initialize without a session; what was subscribed to is subscribed again', async () => {
    const server = serverWithOneLoss();
    server.capabilities = { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } };
    const rig = await connectRig({}, server);
    await rig.call(1, 'logging/setLevel', { level: 'debug' });
    await rig.call(2, 'resources/subscribe', { uri: 'test://a' });
    await rig.call(3, 'resources/subscribe', { uri: 'test://b' });
    await rig.call(4, 'resources/unsubscribe', { uri: 'test://a' });
    server.isGone = true;
    // Not taken by the lost session, so its caller need not know.
    expect((await rig.call(5, 'tools/call', { name: 'x' })).result).toEqual({ ok: true });
    const again = server.asked.slice(server.asked.indexOf(server.of('initialize')[1]!));
    const told = again.map(({ method, message, headers }) => [
      message.method ?? method,
      headers.get('mcp-session-id'),
      message.params?.level ?? message.params?.uri ?? message.params?.clientInfo?.name,
    ]);
    expect(told.slice(0, 4)).toEqual([
      ['initialize', null, 'rig'],
      ['notifications/initialized', 'session-2', undefined],
      ['logging/setLevel', 'session-2', 'debug'],
      ['resources/subscribe', 'session-2', 'test://b'],
    ]);
    expect(told.slice(4).sort()).toEqual([
      ['GET', 'session-2', undefined],
      ['tools/call', 'session-2', undefined],
    ]);
    expect(rig.transport.sessionId).toBe('session-2');
    expect(rig.heard.slice(4)).toEqual([
      'lost',
      'restored',
      'notifications/tools/list_changed',
      'notifications/resources/updated',
      'result 5',
    ]);
    expect(rig.restored[0]).toMatchObject({
      sessionId: 'session-2',
      initializeResult: { serverInfo: { version: '2' } },
      notRestored: [],
    });
    expect(rig.lost[0]?.failedCalls).toEqual([]);
  });

  it('[CLIENT-REINIT] what could not be subscribed to again is told', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({}, server);
    await rig.call(1, 'resources/subscribe', { uri: 'test://a' });
    server.isGone = true;
    const served = server.answer;
    server.answer = (asked) =>
      asked.message.method === 'resources/subscribe' && asked.headers.get('mcp-session-id') === 'session-2'
        ? json({ jsonrpc: '2.0', id: asked.message.id, error: { code: -32002, message: 'no such resource' } })
        : served(asked);
    await rig.call(2);
    expect(rig.restored[0]?.notRestored).toEqual([
      { method: 'resources/subscribe', uri: 'test://a', message: 'no such resource' },
    ]);
  });

  it('[CLIENT-REINIT] is not replaced under manual until the application says so', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({ reinitialize: 'manual' }, server);
    server.isGone = true;
    expect((await rig.call(1)).error?.data).toMatchObject({ type: 'ResumptionRejected', mayHaveRun: false });
    expect((await rig.call(2)).error?.data).toMatchObject({
      type: 'TransportError',
      code: 'CLOSED',
      mayHaveRun: false,
    });
    expect(server.sessions).toBe(1);
    await rig.transport.reinitialize();
    expect((await rig.call(3)).result).toEqual({ ok: true });
    expect(server.sessions).toBe(2);
  });

  it('[CLIENT-REINIT] a server that has no session to give fails the calls that wait, and is asked again by the next one', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({}, server);
    const { onInitialize } = server;
    server.isGone = true;
    server.onInitialize = () => page(403);
    const { error } = await within('the call', rig.call(1), 12_000);
    expect(error?.data).toMatchObject({ type: 'TransportError', mayHaveRun: false });
    server.onInitialize = onInitialize;
    expect((await within('the next call', rig.call(2), 12_000)).result).toEqual({ ok: true });
  });

  it('[CLIENT-REINIT] a server that now speaks a revision which the client does not is no replacement', async () => {
    const server = serverWithOneLoss();
    const rig = await connectRig({}, server);
    rig.transport.setSupportedProtocolVersions(['2025-06-18']);
    server.isGone = true;
    expect((await rig.call(1)).error?.data).toMatchObject({ code: 'NOT_MCP', mayHaveRun: false });
  });

  it('[CLIENT-REINIT] sessions that are lost one after the other are begun at growing distances', async () => {
    const server = new ScriptedServer();
    server.answer = () => gone();
    const rig = await connectRig({ initialDelayMs: 20, maxDelayMs: 80, random: () => 1 }, server);
    await server.until('initialize', 7);
    await rig.transport.close();
    const at = server.of('initialize').map(({ atMs }) => atMs);
    const distances = at.slice(1).map((ms, index) => ms - at[index]!);
    expect(Math.min(...distances.slice(2))).toBeGreaterThan(70);
  });

  it.each([
    [404, 'beyond-end', 'beyond-end'],
    [400, 'cursor-foreign', 'cursor-foreign'],
    [404, 'unheard-of', 'session-invalid'],
  ])('[CLIENT-REFUSED] a resume refused with %d for the reason %s is rejected as %s', async (status, told, reason) => {
    const server = new ScriptedServer();
    const error = { code: -32000, message: 'Resumption rejected', data: { type: 'ResumptionRejected', reason: told } };
    server.answer = ({ headers }) =>
      headers.has('last-event-id')
        ? json({ jsonrpc: '2.0', id: null, error }, {}, status)
        : server.sse().event('a', note(1)).end();
    const rig = await connectRig({ policy: 'compatible', reinitialize: 'manual' }, server);
    await waitUntil('the loss', () => rig.lost.length === 1);
    expect(rig.lost[0]?.rejection.reason).toBe(reason);
  });

  it('[CLIENT-NEVER-TWICE] the rejected cursor is never sent again', async () => {
    const server = new ScriptedServer();
    let gets = 0;
    server.answer = ({ method, message }) => {
      if (method === 'POST') return json(result(message.id));
      gets++;
      if (gets === 1) return server.sse().event('a', note(1)).end();
      return gets === 2 ? page(400) : server.sse();
    };
    const rig = await connectRig({ policy: 'compatible' }, server);
    await waitUntil('the new session', () => rig.restored.length === 1);
    await rig.call(1);
    await pause(60);
    expect(server.of('GET').map(({ headers }) => headers.get('last-event-id'))).toEqual([null, 'a', null]);
  });

  it.each([
    ['another session', { 'Mcp-Session-Id': 'session-9' }, 'session-changed'],
    ['another epoch', { 'X-MCP-Replay-Epoch': 'F' }, 'epoch-mismatch'],
  ] as const)(
    '[CLIENT-ANSWER] an answer that names %s ends the session before a word of it is heard',
    async (_title, headers, reason) => {
      const server = new ScriptedServer();
      server.headers = { 'X-MCP-Replay-Epoch': 'E' };
      server.answer = ({ method }) => {
        if (method === 'GET') return new Response(null, { status: 405 });
        const stream = server.sse();
        if (server.sessions > 1) return stream;
        Object.assign(server.headers, headers);
        return server.sse().event('1', note('not to be heard'));
      };
      const rig = await connectRig({ reinitialize: 'manual', policy: 'compatible' }, server);
      // One that establishes the names, then one that breaks them.
      const first = server.answer;
      server.answer = ({ method }) =>
        method === 'GET' ? new Response(null, { status: 405 }) : server.sse().event('1', result(1));
      await rig.call(1);
      server.answer = first;
      const { error } = await rig.call(2);
      expect(error?.data).toMatchObject({ type: 'ResumptionRejected', reason, mayHaveRun: true });
      expect(rig.got.filter(({ method }) => method === 'notifications/message')).toEqual([]);
    },
  );
});

describe('an answer on another stream than that of its call', () => {
  function twoCalls(): { server: ScriptedServer; streams: Stream[] } {
    const server = new ScriptedServer();
    const streams: Stream[] = [];
    server.answer = ({ method }) => {
      if (method === 'GET') return new Response(null, { status: 405 });
      streams.push(server.sse());
      return streams.at(-1)!;
    };
    return { server, streams };
  }

  it('[CLIENT-WRONG-STREAM] ends the session under strict', async () => {
    const { server, streams } = twoCalls();
    const rig = await connectRig({ reinitialize: 'manual' }, server);
    for (const id of [1, 2]) await rig.transport.send({ jsonrpc: '2.0', id, method: 'tools/call', params: {} });
    await waitUntil('both', () => streams.length === 2);
    streams[1]!.event('a', result(1, { from: 'the other' }));
    expect((await rig.answer(1)).error?.data).toMatchObject({ reason: 'foreign-event' });
    expect((await rig.answer(2)).error?.data).toMatchObject({ reason: 'foreign-event' });
  });

  it('[CLIENT-WRONG-STREAM] is taken and told under compatible', async () => {
    const { server, streams } = twoCalls();
    const rig = await connectRig({ policy: 'compatible' }, server);
    for (const id of [1, 2]) await rig.transport.send({ jsonrpc: '2.0', id, method: 'tools/call', params: {} });
    await waitUntil('both', () => streams.length === 2);
    streams[1]!.event('a', result(1, { from: 'the other' })).event('b', result(2));
    expect((await rig.answer(1)).result).toEqual({ from: 'the other' });
    expect((await rig.answer(2)).result).toEqual({ ok: true });
    expect(rig.unproven).toEqual([{ stream: 'request', eventId: 'a', facts: ['sequence'] }]);
    await waitUntil('its own stream is let go', () => streams[0]!.isCancelled);
  });
});

it.each(['strict', 'compatible'] as const)(
  '[CLIENT-WRONG-STREAM] an answer on the standalone stream, which MCP forbids, ends the session under %s, and is not heard',
  async (policy) => {
    const server = new ScriptedServer();
    const standalone = server.sse();
    server.answer = ({ method }) => (method === 'GET' ? standalone : server.sse());
    const rig = await connectRig({ policy, reinitialize: 'manual' }, server);
    await server.until('GET');
    await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
    await server.until('tools/call');
    standalone.event('a', result(1, { from: 'the standalone stream' }));
    const { error, result: heard } = await rig.answer(1);
    expect(heard).toBeUndefined();
    expect(error?.data).toMatchObject({ type: 'ResumptionRejected', reason: 'foreign-event', mayHaveRun: true });
    expect(rig.unproven).toEqual([]);
  },
);

it('[CLIENT-CANCEL] a call that is cancelled ends on this side at once, and the server is told', async () => {
  const server = serverWithOneLoss();
  const rig = await connectRig({}, server);
  await server.until('GET');
  await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/slow', params: {} });
  await waitUntil('its stream', () => server.streams.length === 2);
  await rig.transport.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  await waitUntil('the stream is let go', () => server.streams[1]!.isCancelled);
  expect(server.of('notifications/cancelled')).toHaveLength(1);
  expect(rig.got).toEqual([]);
});
