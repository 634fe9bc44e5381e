import { MemoryCheckpointStore } from '@throughline/client';
import { readKeptSession } from '@throughline/client/node';
import { describe, expect, it } from 'vitest';
import { connectRig } from './client-rig.ts';
import { ScriptedServer } from './scripted-server.ts';

const URL_TEXT = 'http://server.test/mcp';
const never = new AbortController().signal;

describe('a session that was left behind', () => {
  it('[CLIENT-KEPT] is none where nothing is kept, or what is kept cannot be read', async () => {
    const store = new MemoryCheckpointStore();
    expect(await readKeptSession(URL_TEXT, {})).toBeNull();
    expect(await readKeptSession(URL_TEXT, { store })).toBeNull();
    await store.save(URL_TEXT, '{');
    expect(await readKeptSession(URL_TEXT, { store })).toBeNull();
    // Whoever goes on from it is told.
    expect(await store.load(URL_TEXT)).toBe('{');
  });

  it('[CLIENT-KEPT] is asked for by a ping in its name, and ended by DELETE', async () => {
    const store = new MemoryCheckpointStore();
    const server = new ScriptedServer();
    const first = await connectRig({ store, policy: 'compatible' }, server);
    await first.transport.close();
    const seen: [method: string, session: string | null, version: string | null, token: string | null][] = [];
    let status = 200;
    const fetch = async (_url: string | URL, { method = '', headers }: RequestInit = {}): Promise<Response> => {
      await Promise.resolve();
      const all = new Headers(headers);
      seen.push([method, all.get('mcp-session-id'), all.get('mcp-protocol-version'), all.get('authorization')]);
      if (status === 0) throw new TypeError('fetch failed');
      return new Response(null, { status });
    };
    const kept = await readKeptSession(URL_TEXT, { store, fetch, headers: { Authorization: 'Bearer x' } });
    expect(kept?.sessionId).toBe('session-1');
    const verdicts: [number, unknown][] = [];
    for (status of [200, 202, 404, 410, 400, 401, 403, 429, 500, 503, 0])
      verdicts.push([status, await kept?.probe(never)]);
    expect(verdicts).toEqual([
      [200, 'alive'],
      [202, 'alive'],
      [404, 'gone'],
      [410, 'gone'],
      [400, 'gone'],
      [401, 'unknown'],
      [403, 'unknown'],
      [429, 'unknown'],
      [500, 'unknown'],
      [503, 'unknown'],
      [0, 'unknown'],
    ]);
    await kept?.end(never);
    status = 404;
    await kept?.end(never);
    expect(new Set(seen.map((each) => each.join(' ')))).toEqual(
      new Set(['POST session-1 2025-11-25 Bearer x', 'DELETE session-1 2025-11-25 Bearer x']),
    );
    expect(await store.load(URL_TEXT)).toBeDefined();
  });
});
