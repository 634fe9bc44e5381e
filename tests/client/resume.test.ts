import { setTimeout as pause } from 'node:timers/promises';
import { MemoryCheckpointStore } from '@throughline/client';
import { waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { connectRig, note, result } from './client-rig.ts';
import type { Asked, Stream } from './scripted-server.ts';
import { ScriptedServer } from './scripted-server.ts';

const COMPATIBLE = { policy: 'compatible' } as const;
const cursors = (server: ScriptedServer): (string | null)[] =>
  server.of('GET').flatMap(({ headers }) => headers.get('last-event-id') ?? []);

/** A server whose tools/call opens `streams[0]`, and whose resumes open the others in turn. */
function serverOf(...streams: ((stream: Stream, asked: Asked) => unknown)[]): ScriptedServer {
  const server = new ScriptedServer();
  let next = 0;
  server.answer = (asked) => {
    if (asked.method === 'GET' && !asked.headers.has('last-event-id')) return new Response(null, { status: 405 });
    const stream = server.sse();
    const play = streams[next++];
    if (play === undefined) throw new Error('nothing more was expected');
    play(stream, asked);
    return stream;
  };
  return server;
}

describe('a stream that is cut', () => {
  it('[CLIENT-RESUME] goes on at the id of the last event, in the same session and revision', async () => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).event('b', note(2)).end(),
      (stream) => stream.event('c', note(3)).event('d', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(rig.got.map(({ params }) => params?.data)).toEqual([1, 2, 3, undefined]);
    expect(cursors(server)).toEqual(['b']);
    const resume = server.of('GET').at(-1)!;
    expect(resume.headers.get('mcp-session-id')).toBe('session-1');
    expect(resume.headers.get('mcp-protocol-version')).toBe('2025-11-25');
    expect(resume.headers.get('accept')).toBe('text/event-stream');
  });

  it('[CLIENT-RESUME] keeps its cursor over connections that bring no id', async () => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).cut(),
      (stream) => stream.end(),
      (stream) => stream.raw(': nothing\n\n').cut(),
      (stream) => stream.event('b', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(cursors(server)).toEqual(['a', 'a', 'a']);
  });

  it('[CLIENT-RESUME] an event without data moves the cursor and is not handed over', async () => {
    const server = serverOf(
      (stream) => stream.raw('id: prime\nretry: 5\ndata: \n\n').end(),
      (stream) => stream.raw('id: again\n\n').end(),
      (stream) => stream.event('b', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(cursors(server)).toEqual(['prime', 'again']);
    expect(rig.got).toHaveLength(1);
  });

  it('[CLIENT-BACKOFF] comes back after the time that the server asked for', async () => {
    const server = serverOf(
      (stream) => stream.raw('id: prime\nretry: 120\ndata: \n\n').end(),
      (stream) => stream.event('b', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    const [post, resume] = [server.of('tools/call')[0]!, server.of('GET').at(-1)!];
    expect(resume.atMs - post.atMs).toBeGreaterThanOrEqual(119);
    expect(resume.atMs - post.atMs).toBeLessThan(10_000);
  });

  it('[CLIENT-BACKOFF] a server that closes to be polled is polled at its own pace', async () => {
    const poll = (stream: Stream): Stream => stream.raw('id: prime\nretry: 20\ndata: \n\n').end();
    const server = serverOf(...Array.from({ length: 8 }, () => poll), (stream) => stream.event('b', result(1)));
    const rig = await connectRig(
      { ...COMPATIBLE, initialDelayMs: 30_000, maxDelayMs: 30_000, giveUpMs: 60_000 },
      server,
    );
    const began = performance.now();
    await rig.call(1);
    expect(performance.now() - began).toBeLessThan(12_000);
  });

  it('[CLIENT-PROCESSED] the place moves past an event when its handler has returned, and not before', async () => {
    let release = (): void => undefined;
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const store = new MemoryCheckpointStore();
    const place = async (): Promise<unknown> =>
      JSON.parse((await store.load('http://server.test/mcp')) ?? '{}').calls?.[0]?.stream.lastEventId;
    let sent: Stream | undefined;
    const server = serverOf((stream) => {
      sent = stream.event('a', note(1)).event('b', note(2));
    });
    const rig = await connectRig({ ...COMPATIBLE, store }, server, (message) =>
      message.params?.data === 2 ? blocked : undefined,
    );
    const answer = rig.call(1);
    await waitUntil('the second event', () => rig.got.length === 2);
    await waitUntil('the place of the first one', async () => (await place()) === 'a');
    await pause(30);
    expect(await place()).toBe('a');
    release();
    await waitUntil('the place of the second one', async () => (await place()) === 'b');
    sent?.event('c', result(1));
    expect((await answer).result).toEqual({ ok: true });
  });

  it('[CLIENT-PROCESSED] a handler that throws has had its event: it is told and not handed over again', async () => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).cut(),
      (stream) => stream.event('b', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server, ({ method }) => {
      if (method !== undefined) throw new RangeError('the application fails');
    });
    await rig.call(1);
    expect(cursors(server)).toEqual(['a']);
    expect(rig.errors.some((error) => error instanceof RangeError)).toBe(true);
  });

  it('[CLIENT-POLICY] under compatible it is told once a connection what nobody has proved', async () => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).cut(),
      (stream) => stream.event('b', note(2)).event('c', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(rig.unproven).toEqual([{ stream: 'request', eventId: 'b', facts: ['epoch', 'sequence', 'content'] }]);
  });

  it('[CLIENT-JUDGE] an event that came before is not handed over again; one from earlier ends the session', async () => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).event('b', note(2)).cut(),
      (stream) => stream.event('b', note(2)).cut(),
      (stream) => stream.event('a', note(1)),
    );
    const rig = await connectRig({ ...COMPATIBLE, reinitialize: 'manual' }, server);
    const { error } = await rig.call(1);
    expect(error?.data).toEqual({
      type: 'ResumptionRejected',
      code: 'RESUMPTION_REJECTED',
      reason: 'replay-reset',
      action: 'reinitialize',
      mayHaveRun: true,
    });
    expect(rig.got.map(({ params }) => params?.data)).toEqual([1, 2, undefined]);
  });
});

describe('an event stream as it may come', () => {
  it.each<[title: string, write: (stream: Stream) => unknown]>([
    ['with a byte order mark', (s) => s.raw('\uFEFF').event('a', note('é'))],
    ['with CRLF', (s) => s.raw(`id: a\r\ndata: ${JSON.stringify(note('é'))}\r\n\r\n`)],
    ['with CR', (s) => s.raw(`id: a\rdata: ${JSON.stringify(note('é'))}\r\r`)],
    [
      'with a CRLF that is cut',
      (s) =>
        s
          .raw(`id: a\r`)
          .raw(`\ndata: ${JSON.stringify(note('é'))}\r`)
          .raw('\n\r')
          .raw('\n'),
    ],
    [
      'byte by byte',
      (s) => {
        for (const byte of new TextEncoder().encode(`id: a\ndata: ${JSON.stringify(note('é'))}\n\n`))
          s.raw(Uint8Array.of(byte));
      },
    ],
    ['of the type message', (s) => s.raw(`event: message\nid: a\ndata: ${JSON.stringify(note('é'))}\n\n`)],
    [
      'over several data lines',
      (s) => s.raw(`id: a\ndata: {"jsonrpc":"2.0",\ndata: ${JSON.stringify(note('é')).slice(17)}\n\n`),
    ],
  ])('[CLIENT-SSE] %s is read as it is', async (_title, write) => {
    const server = serverOf((stream) => {
      write(stream);
      stream.event('z', result(1));
    });
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(rig.got.map(({ params }) => params?.data)).toEqual(['é', undefined]);
  });

  it('[CLIENT-SSE] an event without its last line end is no event: it is asked for again', async () => {
    const whole = `id: b\ndata: ${JSON.stringify(note(2))}\n`;
    const server = serverOf(
      (stream) => stream.event('a', note(1)).raw(whole).end(),
      (stream) => stream.event('b', note(2)).event('c', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(cursors(server)).toEqual(['a']);
    expect(rig.got.map(({ params }) => params?.data)).toEqual([1, 2, undefined]);
  });

  it.each<[title: string, bytes: string | Uint8Array]>([
    ['bytes that are no UTF-8', Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a)],
    ['an event without an end', `data: ${'x'.repeat(5000)}`],
    ['an event of many lines without an end', `data: ${'x'.repeat(60)}\n`.repeat(80)],
  ])('[CLIENT-SSE] %s break the connection and are never handed over', async (_title, bytes) => {
    const server = serverOf(
      (stream) => stream.event('a', note(1)).raw(bytes),
      (stream) => stream.event('b', result(1)),
    );
    const rig = await connectRig({ ...COMPATIBLE, maxEventChars: 4000 }, server);
    await rig.call(1);
    expect(cursors(server)).toEqual(['a']);
    expect(rig.got.map(({ params }) => params?.data)).toEqual([1, undefined]);
    expect(rig.errors.map(({ code }) => code)).toContain('NOT_MCP');
  });

  it('[CLIENT-SSE] an event of another type is not handed over; what is no JSON-RPC message is told', async () => {
    const server = serverOf((stream) =>
      stream
        .raw('event: ping\nid: p\ndata: {"x":1}\n\n')
        .event('q', 'no JSON')
        .event('r', '{"jsonrpc":"1.0"}')
        .event('s', result(1)),
    );
    const rig = await connectRig(COMPATIBLE, server);
    await rig.call(1);
    expect(rig.got).toHaveLength(1);
    expect(rig.errors.filter(({ code }) => code === 'NOT_MCP')).toHaveLength(2);
  });
});
