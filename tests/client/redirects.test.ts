import { describe, expect, it } from 'vitest';
import { connectRig, note, result } from './client-rig.ts';
import { ScriptedServer } from './scripted-server.ts';
import type { Asked } from './scripted-server.ts';

const COMPATIBLE = { policy: 'compatible' } as const;
const ELSEWHERE = '/moved/mcp?by=proxy';

function redirect(status: number, location: string | null): Response {
  return new Response(null, { status, headers: location === null ? {} : { Location: location } });
}

/** Everything is redirected there, and answered there. */
function movedServer(
  status: number,
  answer: (asked: Asked, server: ScriptedServer) => ReturnType<ScriptedServer['answer']>,
): ScriptedServer {
  const server = new ScriptedServer();
  server.answer = (asked) =>
    new URL(asked.url).pathname === '/mcp' ? redirect(status, ELSEWHERE) : answer(asked, server);
  return server;
}

describe('a redirect', () => {
  it.each([307, 308])(
    '[CLIENT-REDIRECT] with status %i to the same origin is followed with method, body and headers, and the session goes on at its cursor',
    async (status) => {
      const server = movedServer(status, ({ method, headers }, { sse }) => {
        const stream = sse.call(server);
        if (method === 'POST') return stream.event('a', note('first')).cut();
        return headers.get('last-event-id') === 'a'
          ? stream.event('b', result(1))
          : new Response(null, { status: 405 });
      });
      const rig = await connectRig({ ...COMPATIBLE, headers: { Authorization: 'Bearer secret' } }, server);
      expect((await rig.call(1)).result).toEqual({ ok: true });
      expect(rig.lost).toEqual([]);
      const moved = server.asked.filter(({ url }) => url.endsWith(ELSEWHERE));
      const [post] = moved.filter(({ method }) => method === 'POST');
      expect(post?.url).toBe(`http://server.test${ELSEWHERE}`);
      expect(post?.message).toMatchObject({ id: 1, method: 'tools/call' });
      const resumed = moved.find(({ headers }) => headers.get('last-event-id') === 'a');
      expect(Object.fromEntries(resumed?.headers ?? [])).toMatchObject({
        authorization: 'Bearer secret',
        'mcp-session-id': 'session-1',
        'mcp-protocol-version': '2025-11-25',
      });
    },
  );

  it.each<[status: number, location: string | null]>([
    [307, 'http://elsewhere.test/mcp'],
    [308, 'http://elsewhere.test/mcp'],
    [308, 'https://server.test/mcp'],
    [308, 'http://server.test:8080/mcp'],
    [307, '//elsewhere.test/mcp'],
    [307, 'http://me:secret@server.test/mcp'],
    [307, 'http://['],
    [307, null],
    [301, '/moved'],
    [302, '/moved'],
    [303, '/moved'],
  ])(
    '[CLIENT-REDIRECT] with status %i to %j is not followed: session and credentials stay where they are',
    async (status, location) => {
      const server = new ScriptedServer();
      server.answer = () => redirect(status, location);
      const inits: (RequestInit | undefined)[] = [];
      const rig = await connectRig(
        { ...COMPATIBLE, fetch: (url, init) => (inits.push(init), server.fetch(url, init)) },
        server,
      );
      const { error } = await rig.call(1);
      expect(error?.data).toMatchObject({ code: 'HTTP_STATUS', status, mayHaveRun: false });
      if (location !== null) expect(error?.message).toContain(location);
      expect(new Set(server.asked.map(({ url }) => url))).toEqual(new Set(['http://server.test/mcp']));
      expect(inits.map((init) => init?.redirect)).toEqual(inits.map(() => 'manual'));
    },
  );

  it('[CLIENT-REDIRECT] that leads to itself ends after five', async () => {
    const server = new ScriptedServer();
    server.answer = () => redirect(307, '/mcp');
    const rig = await connectRig(COMPATIBLE, server);
    expect((await rig.call(1)).error?.data).toMatchObject({ code: 'HTTP_STATUS', status: 307 });
    expect(server.of('tools/call')).toHaveLength(6);
  });
});
