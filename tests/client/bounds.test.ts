import { setTimeout as pause } from 'node:timers/promises';
import { waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectRig, INITIALIZE, makeRig, note, result, SHORT } from './client-rig.ts';
import { json, page, ScriptedServer } from './scripted-server.ts';
import type { Answer, Asked } from './scripted-server.ts';

const COMPATIBLE = { policy: 'compatible' } as const;

/** POSTs of calls are answered by `answer`, resumes by `resumed`; there is no standalone stream. */
function serverOf(
  answer: (asked: Asked) => Answer,
  resumed: (asked: Asked) => Answer = () => page(500),
): ScriptedServer {
  const server = new ScriptedServer();
  server.answer = (asked) => {
    if (asked.method === 'POST') return answer(asked);
    return asked.headers.has('last-event-id') ? resumed(asked) : new Response(null, { status: 405 });
  };
  return server;
}

describe('a call', () => {
  it.each<[title: string, answer: (this: ScriptedServer) => Answer, code: string, mayHaveRun: boolean]>([
    ['a server that is out of reach', () => 'unreachable', 'UNREACHABLE', true],
    ['a server that is not there', () => 'refused', 'UNREACHABLE', false],
    [
      'a stream that says nothing for ever',
      function () {
        return this.sse();
      },
      'SILENT',
      true,
    ],
    [
      'a stream that ends empty',
      function () {
        return this.sse().end();
      },
      'NO_ANSWER',
      true,
    ],
    [
      'a stream that breaks',
      function () {
        return this.sse().cut();
      },
      'UNREACHABLE',
      true,
    ],
    ['a page of a proxy', () => page(200), 'NOT_MCP', true],
    ['a page with 502', () => page(502), 'HTTP_STATUS', true],
    ['a page with 503, for ever', () => page(503), 'HTTP_STATUS', false],
    ['500', () => page(500), 'HTTP_STATUS', true],
    ['400', () => page(400), 'HTTP_STATUS', false],
    ['403', () => page(403), 'HTTP_STATUS', false],
    [
      'a redirect',
      () => new Response(null, { status: 307, headers: { Location: 'http://elsewhere.test/' } }),
      'HTTP_STATUS',
      false,
    ],
    ['202 and nothing more', () => new Response(null, { status: 202 }), 'NO_ANSWER', true],
    ['JSON that is no answer', () => json({ jsonrpc: '2.0', id: 77, result: {} }), 'NO_ANSWER', true],
    [
      'JSON that is none',
      () => new Response('{', { headers: { 'Content-Type': 'application/json' } }),
      'NO_ANSWER',
      true,
    ],
  ])('[CLIENT-BOUND] ends with an error after %s', async (_title, answer, code, mayHaveRun) => {
    const server: ScriptedServer = serverOf(() => answer.call(server));
    const rig = await connectRig({ ...COMPATIBLE, ...SHORT }, server);
    const { error } = await within('the call', rig.call(1), 12_000);
    expect(error?.code).toBe(-32000);
    expect(error?.data).toMatchObject({ type: 'TransportError', code, mayHaveRun });
    // And the session goes on.
    server.answer = ({ message }) => json(result(message.id));
    expect((await rig.call(2)).result).toEqual({ ok: true });
  });

  it('[CLIENT-BOUND] ends with an error where each resume is accepted and says nothing', async () => {
    const server: ScriptedServer = serverOf(
      () => server.sse().event('a', note(1)).end(),
      () => server.sse().raw(': comment\n\n').end(),
    );
    const rig = await connectRig({ ...COMPATIBLE, ...SHORT }, server);
    const { error } = await within('the call', rig.call(1), 12_000);
    expect(error?.data).toMatchObject({ type: 'TransportError', code: 'NO_ANSWER', mayHaveRun: true });
    const resumes = server.of('GET').filter(({ headers }) => headers.has('last-event-id'));
    // Backoff, not as fast as it can: 400 ms at 8 ms each at least.
    expect(resumes.length).toBeLessThan(80);
  });

  it('[CLIENT-BOUND] ends with an error where the server says that nothing follows', async () => {
    const server: ScriptedServer = serverOf(
      () => server.sse().event('a', note(1)).end(),
      () => new Response(null, { status: 204 }),
    );
    const rig = await connectRig(COMPATIBLE, server);
    const { error } = await within('the call', rig.call(1), 12_000);
    expect(error?.data).toMatchObject({ code: 'NO_ANSWER', mayHaveRun: true });
    expect(server.of('GET').filter(({ headers }) => headers.has('last-event-id'))).toHaveLength(1);
  });

  it('[CLIENT-BOUND] may take as long as it likes while the server is heard', async () => {
    const server: ScriptedServer = serverOf(() => {
      const stream = server.sse();
      void (async () => {
        for (let index = 0; index < 40; index++) {
          await pause(60);
          stream.raw(': keepalive\n\n');
        }
        stream.event('a', result(1));
      })();
      return stream;
    });
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 1500, quietMs: 1500, silenceMs: 1500 }, server);
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(server.of('tools/call')).toHaveLength(1);
  });

  it('[CLIENT-SILENCE] a server that sent keepalives and falls silent is left, and the stream goes on elsewhere', async () => {
    const server: ScriptedServer = serverOf(
      () => server.sse().event('a', note(1)).raw(': keepalive\n\n'),
      () => server.sse().event('b', result(1)),
    );
    const rig = await connectRig({ ...COMPATIBLE, silenceMs: 80, quietMs: 60_000, giveUpMs: 5000 }, server);
    expect((await within('the call', rig.call(1), 12_000)).result).toEqual({ ok: true });
    expect(rig.errors.map(({ code }) => code)).toEqual(['SILENT']);
  });

  it('[CLIENT-SILENCE] a stream that is silent already is left as soon when another stream shows that the server sends keepalives', async () => {
    const server = new ScriptedServer();
    const standalone = server.sse();
    server.answer = ({ method, headers }) => {
      if (method === 'POST') return server.sse().event('a', note('first'));
      return headers.get('last-event-id') === 'a' ? server.sse().event('b', result(1)) : standalone;
    };
    const rig = await connectRig({ ...COMPATIBLE, silenceMs: 2000, quietMs: 60_000, giveUpMs: 30_000 }, server);
    const call = rig.call(1);
    await waitUntil('the first event', () => rig.got.length === 1);
    const keepingAlive = setInterval(() => standalone.raw(': \n\n'), 100);
    onTestFinished(() => {
      clearInterval(keepingAlive);
    });
    expect((await within('the call', call, 15_000)).result).toEqual({ ok: true });
    expect(rig.errors.map(({ code }) => code)).toContain('SILENT');
  });

  it('[CLIENT-HTTP] an HTTP refusal passes on the error of the server, with its own data', async () => {
    const data = { code: 'BODY_TOO_LARGE', retry: 'never' };
    const server = serverOf(({ message: { id } }) =>
      json({ jsonrpc: '2.0', id, error: { code: -32000, message: 'too large', data } }, {}, 413),
    );
    const rig = await connectRig(COMPATIBLE, server);
    expect((await rig.call(1)).error).toEqual({
      code: -32000,
      message: 'too large',
      data: { ...data, mayHaveRun: false, status: 413 },
    });
  });

  it('[CLIENT-BOUND] what is sent after close is refused, and nothing is delivered any more', async () => {
    const server: ScriptedServer = serverOf(() => server.sse());
    const rig = await connectRig(COMPATIBLE, server);
    await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
    await rig.transport.close();
    await rig.transport.close();
    await rig.transport.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: {} });
    await expect(rig.transport.send({ jsonrpc: '2.0', method: 'notifications/x' })).rejects.toMatchObject({
      code: 'CLOSED',
    });
    expect(rig.got).toEqual([]);
  });

  it('[CLIENT-BOUND] that waits when the session is terminated ends with an error', async () => {
    const server: ScriptedServer = serverOf(() => server.sse());
    const rig = await connectRig(COMPATIBLE, server);
    const call = rig.call(1);
    await server.until('tools/call');
    await rig.transport.terminateSession();
    expect((await within('the call', call)).error?.data).toMatchObject({ code: 'CLOSED', mayHaveRun: true });
  });

  it('[CLIENT-BOUND] that waits for a new session ends when the transport is closed', async () => {
    const server: ScriptedServer = serverOf(() => page(404));
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 60_000 }, server);
    server.onInitialize = () => server.sse();
    await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
    await server.until('initialize', 2);
    const waiting = rig.transport.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: {} });
    await rig.transport.close();
    await within('what was sent meanwhile', waiting);
  });

  it('[CLIENT-BOUND] a server that asks without end is answered with errors, and memory is bounded', async () => {
    const server: ScriptedServer = serverOf(({ message }) => {
      if (message.method === undefined) return new Response(null, { status: 202 });
      const stream = server.sse();
      const ask = (id: number): string =>
        JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: {} });
      stream.raw(Array.from({ length: 1010 }, (_, id) => `id: e${id}\ndata: ${ask(id)}\n\n`).join(''));
      return stream.event('z', result(1));
    });
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(rig.got.filter(({ method }) => method === 'elicitation/create')).toHaveLength(1000);
    await waitUntil(
      'the errors',
      () => server.asked.filter(({ message }) => message.error !== undefined).length === 10,
    );
  });

  it('[CLIENT-BOUND] a first initialize that nobody answers ends with an error', async () => {
    const server = new ScriptedServer();
    server.onInitialize = () => 'unreachable';
    const rig = makeRig(SHORT, server);
    await rig.transport.start();
    await rig.transport.send(INITIALIZE);
    const { error } = await within('initialize', rig.answer('init'), 12_000);
    expect(error?.data).toMatchObject({ code: 'UNREACHABLE' });
  });
});

describe('a message that is posted', () => {
  it.each<[method: string, posts: number]>([
    ['tools/list', 3],
    ['resources/read', 3],
    ['ping', 3],
    ['tools/call', 1],
    ['vendor/anything', 1],
  ])('[CLIENT-REPEAT] %s without an answer from a foreign server is posted %d times', async (method, posts) => {
    let count = 0;
    const server = serverOf(({ message }) => (++count < 3 ? 'unreachable' : json(result(message.id))));
    const rig = await connectRig(COMPATIBLE, server);
    const { error } = await rig.call(1, method, {});
    expect(error?.data.mayHaveRun).toBe(posts === 1 ? true : undefined);
    expect(server.of(method)).toHaveLength(posts);
  });

  it('[CLIENT-REPEAT] what was certainly not taken is posted again, after Retry-After', async () => {
    let count = 0;
    const busy = (): Response => new Response(null, { status: 503, headers: { 'Retry-After': '1' } });
    const server = serverOf(({ message }) => (++count < 2 ? busy() : json(result(message.id))));
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 5000 }, server);
    expect((await rig.call(1)).result).toEqual({ ok: true });
    const [first, second] = server.of('tools/call');
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(995);
  });

  it('[CLIENT-UNSENT] [CLIENT-REPEAT] what never left is posted again, whatever it does', async () => {
    let count = 0;
    const server = serverOf(({ message }) => (++count < 3 ? 'refused' : json(result(message.id))));
    const rig = await connectRig(COMPATIBLE, server);
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(server.of('tools/call')).toHaveLength(3);
  });

  it.each<[order: string, first: Answer, later: Answer, method: string, mayHaveRun: boolean]>([
    ['of which the first may have come', 'unreachable', 'refused', 'tools/list', true],
    ['of which a later one may have come', 'refused', 'unreachable', 'tools/call', true],
    ['of which none has left', 'refused', 'refused', 'tools/call', false],
    ['that were refused, or sent away with 503', page(503), 'refused', 'tools/call', false],
  ])('[CLIENT-UNSENT] attempts %s', async (_order, first, later, method, mayHaveRun) => {
    let count = 0;
    const server = serverOf(() => (++count === 1 ? first : later));
    const rig = await connectRig({ ...COMPATIBLE, ...SHORT }, server);
    const { error } = await within('the call', rig.call(1, method), 12_000);
    expect(error?.data).toMatchObject({ code: 'UNREACHABLE', mayHaveRun });
    expect(server.of(method).length).toBeGreaterThan(1);
  });

  it('[CLIENT-UNSENT] a call whose headers could not be made has not left', async () => {
    let isBroken = false;
    const headers = (): Record<string, string> => {
      if (isBroken) throw new Error('no token');
      return {};
    };
    const rig = await connectRig(
      { ...COMPATIBLE, ...SHORT, headers },
      serverOf(() => page(500)),
    );
    isBroken = true;
    const { error } = await within('the call', rig.call(1), 12_000);
    expect(error?.data).toMatchObject({ code: 'UNREACHABLE', mayHaveRun: false });
  });

  it('[CLIENT-REPEAT] a notification is posted until it is taken, or its sender is told', async () => {
    let count = 0;
    const server = serverOf(() => (++count < 3 ? 'unreachable' : new Response(null, { status: 202 })));
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 1500 }, server);
    const send = (): Promise<void> => rig.transport.send({ jsonrpc: '2.0', method: 'notifications/x' });
    await send();
    expect(server.of('notifications/x')).toHaveLength(3);
    server.answer = () => page(503);
    await expect(within('the notification', send(), 12_000)).rejects.toMatchObject({
      code: 'HTTP_STATUS',
      status: 503,
    });
    server.answer = () => page(400);
    await expect(send()).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 400 });
  });
});

describe('the standalone stream', () => {
  it('[CLIENT-LISTEN] is opened again when it ends, breaks, or its server is away, and keeps its cursor', async () => {
    const server = new ScriptedServer();
    const streams = [
      () => server.sse().event('a', note(1)).cut(),
      () => page(502),
      () => 'unreachable' as const,
      () => server.sse().end(),
      () => server.sse().event('b', note(2)),
    ];
    server.answer = () => streams.shift()?.() ?? server.sse();
    const rig = await connectRig({ ...COMPATIBLE, quietMs: 5000 }, server);
    await waitUntil('both', () => rig.got.length === 2);
    expect(server.of('GET').map(({ headers }) => headers.get('last-event-id'))).toEqual([null, 'a', 'a', 'a', 'a']);
    expect(rig.got.map(({ params }) => params?.data)).toEqual([1, 2]);
  });

  it('[CLIENT-LISTEN] goes on being asked for after the deadline of calls', async () => {
    const server = new ScriptedServer();
    let isUp = false;
    server.answer = () => (isUp ? server.sse().event('a', note(1)) : 'unreachable');
    const rig = await connectRig({ ...COMPATIBLE, giveUpMs: 30 }, server);
    await pause(200);
    isUp = true;
    await waitUntil('the message', () => rig.got.length === 1);
  });

  it('[CLIENT-LISTEN] is not asked for again where the server offers none', async () => {
    const rig = await connectRig(COMPATIBLE);
    await rig.server.until('GET');
    await pause(100);
    expect(rig.server.of('GET')).toHaveLength(1);
  });

  it('[CLIENT-LISTEN] says so when a stream without a cursor is opened again', async () => {
    const server = new ScriptedServer();
    const streams = [() => server.sse().end(), () => page(502), () => server.sse().event('b', note(2))];
    server.answer = () => streams.shift()?.() ?? server.sse();
    const rig = await connectRig({ quietMs: 5000 }, server);
    await waitUntil('the message', () => rig.got.length === 1);
    expect(rig.unproven).toEqual([{ stream: 'standalone', eventId: null, facts: ['sequence'] }]);
    expect(rig.lost).toEqual([]);
  });

  it('[CLIENT-LISTEN] is not opened as fast as it can where no cursor holds for long', async () => {
    const server = new ScriptedServer();
    server.answer = ({ headers }) =>
      headers.has('last-event-id') ? new Response(null, { status: 204 }) : server.sse().event('a', note(1)).end();
    await connectRig({ ...COMPATIBLE, initialDelayMs: 20, maxDelayMs: 80, random: () => 1 }, server);
    await pause(400);
    expect(server.of('GET').length).toBeLessThan(16);
  });

  it('[CLIENT-LISTEN] begins anew, and says so, where the server holds nothing at its cursor', async () => {
    const server = new ScriptedServer();
    let opened = 0;
    server.answer = ({ headers }) => {
      if (headers.has('last-event-id')) return new Response(null, { status: 204 });
      return ++opened === 1 ? server.sse().event('a', note(1)).end() : server.sse().event('b', note(2));
    };
    const rig = await connectRig(COMPATIBLE, server);
    await waitUntil('both', () => rig.got.length === 2);
    expect(rig.unproven).toEqual([{ stream: 'standalone', eventId: null, facts: ['sequence'] }]);
  });
});
