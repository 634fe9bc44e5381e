import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MemoryCheckpointStore } from '@throughline/client';
import type { CheckpointStore } from '@throughline/client';
import { FileCheckpointStore } from '@throughline/client/node';
import { makeScratchFolder, waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectRig, INITIALIZE, makeRig, note, result } from './client-rig.ts';
import { json, ScriptedServer } from './scripted-server.ts';
import type { Stream } from './scripted-server.ts';

const COMPATIBLE = { policy: 'compatible' } as const;
const KEY = 'http://server.test/mcp';

function scratch(): string {
  const folder = makeScratchFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return path.join(folder.path, 'place');
}

/** Calls and listeners get streams; nothing ends by itself. */
function openServer(): ScriptedServer & { streams: Stream[] } {
  const server = Object.assign(new ScriptedServer(), { streams: [] as Stream[] });
  server.answer = ({ method, message }) => {
    if (message.method === undefined && method === 'POST') return new Response(null, { status: 202 });
    if (message.method !== undefined && message.method !== 'tools/call') return json(result(message.id));
    server.streams.push(server.sse());
    return server.streams.at(-1)!;
  };
  return server;
}

describe('a place that is kept', () => {
  it.each<[name: string, make: () => CheckpointStore]>([
    ['memory', () => new MemoryCheckpointStore()],
    ['files', () => new FileCheckpointStore(scratch())],
  ])('[CLIENT-SAVED] in %s lets a new process go on in the same session, at the same places', async (_name, make) => {
    const store = make();
    const server = openServer();
    const first = await connectRig({ ...COMPATIBLE, store }, server);
    await server.until('GET');
    await first.transport.send({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'x', _meta: { progressToken: 1 } },
    });
    await waitUntil('the streams', () => server.streams.length === 2);
    server.streams[0]!.event('s1', note('standalone'));
    server.streams[1]!.event('c1', note('call')).event('c2', {
      jsonrpc: '2.0',
      id: 7,
      method: 'elicitation/create',
      params: {},
    });
    await waitUntil('three messages', () => first.got.length === 3);
    await first.transport.close();

    const orphans: unknown[] = [];
    const third = makeRig({ ...COMPATIBLE, store, onOrphanAnswer: (orphan) => orphans.push(orphan) }, server);
    await third.transport.start();
    await third.transport.send({ ...INITIALIZE, id: 0 });
    // The application is served by what the server said then: nothing was posted.
    expect((await third.answer(0)).result).toMatchObject({ serverInfo: { version: '1' } });
    expect(server.of('initialize')).toHaveLength(1);
    expect(third.transport.sessionId).toBe('session-1');
    await third.transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await waitUntil('both resumes', () => server.of('GET').length === 3);
    expect(server.of('notifications/initialized')).toHaveLength(1);
    const resumed = server.of('GET').slice(1);
    expect(resumed.map(({ headers }) => headers.get('last-event-id')).sort()).toEqual(['c2', 's1']);
    expect(resumed.map(({ headers }) => headers.get('mcp-session-id'))).toEqual(['session-1', 'session-1']);
    expect(resumed.map(({ headers }) => headers.get('mcp-protocol-version'))).toEqual(['2025-11-25', '2025-11-25']);
    // What the server asked and nobody answered is asked again.
    expect(third.got.map(({ id, method }) => [id, method])).toContainEqual([7, 'elicitation/create']);
    await third.transport.send({ jsonrpc: '2.0', id: 7, result: { action: 'accept' } });
    await waitUntil('its answer', () => server.asked.some(({ message }) => message.result?.action === 'accept'));
    // The answer to the call of the former process finds no caller, and is not lost.
    const ofCall = server.streams[2 + resumed.findIndex(({ headers }) => headers.get('last-event-id') === 'c2')]!;
    ofCall.event('c3', result(1, { late: true }));
    await waitUntil('the orphan', () => orphans.length === 1);
    expect(orphans).toEqual([{ method: 'tools/call', response: result(1, { late: true }) }]);
  });

  it('[CLIENT-IDS] a new process uses no id and no progress token of a former one', async () => {
    const store = new MemoryCheckpointStore();
    const server = openServer();
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'x', _meta: { progressToken: 1 } },
    } as const;
    const first = await connectRig({ ...COMPATIBLE, store }, server);
    await first.transport.send(call);
    await waitUntil('its stream', () => server.streams.length === 2);
    server.streams[1]!.raw('id: c1\ndata:\n\n');
    await waitUntil('its place', async () => (await store.load(KEY))?.includes('"c1"') === true);
    await first.transport.close();

    const second = await connectRig({ ...COMPATIBLE, store }, server);
    await waitUntil('the resumes', () => server.of('GET').length === 3);
    await second.transport.send(call);
    await second.transport.send({ ...call, id: 'one', params: {} });
    await waitUntil('the calls', () => server.of('tools/call').length === 3);
    expect(server.of('tools/call').map(({ message }) => [message.id, message.params?._meta?.progressToken])).toEqual([
      [1, 1],
      ['p1-1', 'p1-1'],
      ['p1_one', undefined],
    ]);
    const progress = (progressToken: unknown): object => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: 1 },
    });
    const own = server.streams[server.streams.length - 2]!;
    own.event('d1', progress('p1-1')).event('d2', result('p1-1'));
    expect((await second.answer(1)).result).toEqual({ ok: true });
    // Progress of the former process would be taken for that of a call of this one.
    const former =
      server.streams[
        2 +
          server
            .of('GET')
            .slice(1)
            .findIndex(({ headers }) => headers.get('last-event-id') === 'c1')
      ]!;
    former.event('x', progress(1));
    await pause(30);
    expect(second.got.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params)).toEqual([
      { progressToken: 1, progress: 1 },
    ]);
    await second.transport.close();

    const third = await connectRig({ ...COMPATIBLE, store }, server);
    await third.transport.send(call);
    await waitUntil('the call', () => server.of('tools/call').length === 4);
    expect(server.of('tools/call')[3]?.message.id).toBe('p2-1');
  });

  it('[CLIENT-SAVED] of another application is not used', async () => {
    const store = new MemoryCheckpointStore();
    const server = openServer();
    await (await connectRig({ ...COMPATIBLE, store }, server)).transport.close();
    const other = makeRig({ ...COMPATIBLE, store }, server);
    await other.transport.start();
    const params = { ...INITIALIZE.params, capabilities: { sampling: {} } };
    await other.transport.send({ ...INITIALIZE, params });
    await other.answer('init');
    expect(other.transport.sessionId).toBe('session-2');
  });

  it.each(['', '{', '{"v":1}', '{"v":2}', '[]', 'null', JSON.stringify({ v: 1, sessionId: 5 })])(
    '[CLIENT-SAVED] as %j is told and not used',
    async (text) => {
      const store = new MemoryCheckpointStore();
      await store.save(KEY, text);
      const rig = await connectRig({ ...COMPATIBLE, store }, openServer());
      expect(rig.errors.map(({ code }) => code)).toEqual(['STORE']);
      expect(rig.transport.sessionId).toBe('session-1');
    },
  );

  it('[CLIENT-SAVED] a session that is gone when the new process comes is begun anew, and the application told', async () => {
    const store = new MemoryCheckpointStore();
    const server = openServer();
    const first = await connectRig({ ...COMPATIBLE, store }, server);
    await waitUntil('the stream', () => server.streams.length === 1);
    server.streams[0]!.event('s1', note(1));
    await waitUntil('the message', () => first.got.length === 1);
    await first.transport.close();
    const { answer } = server;
    server.answer = (asked) =>
      asked.headers.get('mcp-session-id') === 'session-1' ? new Response(null, { status: 404 }) : answer(asked);
    const second = await connectRig({ ...COMPATIBLE, store }, server);
    await waitUntil('the new session', () => second.restored.length === 1);
    expect(second.lost[0]).toMatchObject({
      sessionId: 'session-1',
      rejection: { reason: 'session-invalid', lastEventId: 's1' },
    });
    expect(second.transport.sessionId).toBe('session-2');
  });

  it('[CLIENT-STORE] is forgotten when the session is terminated', async () => {
    const store = new MemoryCheckpointStore();
    const server = openServer();
    const rig = await connectRig({ ...COMPATIBLE, store }, server);
    await waitUntil('the place', () => store.load(KEY));
    await rig.transport.terminateSession();
    expect(await store.load(KEY)).toBeUndefined();
    expect(server.asked.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
    expect(rig.transport.sessionId).toBeUndefined();
  });

  it('[CLIENT-STORE] is written by one save at a time, the newest last; a store that fails is told and stops nothing', async () => {
    let running = 0;
    let most = 0;
    const saved: string[] = [];
    const store: CheckpointStore = {
      load: async () => undefined,
      async save(_key, text) {
        most = Math.max(most, ++running);
        await pause(5);
        running--;
        saved.push(text);
        if (saved.length === 2) throw new Error('the disk is full');
      },
      remove: async () => undefined,
    };
    const server = openServer();
    const rig = await connectRig({ ...COMPATIBLE, store }, server);
    await waitUntil('the stream', () => server.streams.length === 1);
    for (let index = 1; index <= 200; index++) server.streams[0]!.event(`e${index}`, note(index));
    await waitUntil('all', () => rig.got.length === 200);
    await waitUntil('the last place', () => saved.at(-1)?.includes('"lastEventId":"e200"') === true);
    expect(most).toBe(1);
    expect(saved.length).toBeLessThan(100);
    expect(rig.errors.map(({ code }) => code)).toEqual(['STORE']);
  });
});

describe('the file store', () => {
  it('[CLIENT-FILE] keeps each key apart, readable by its owner alone, and leaves nothing else behind', async () => {
    const folder = scratch();
    const store = new FileCheckpointStore(folder);
    expect(await store.load('a')).toBeUndefined();
    await store.remove('a');
    await Promise.all([store.save('a', 'A'), store.save('b/../c', 'B')]);
    await store.save('a', 'A2');
    expect(await store.load('a')).toBe('A2');
    expect(await store.load('b/../c')).toBe('B');
    expect(readdirSync(folder)).toHaveLength(2);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(store.fileOf('a')).mode & 0o777).toBe(0o600);
    await store.remove('a');
    expect(await store.load('a')).toBeUndefined();
  });

  it('[CLIENT-FILE] a save that fails leaves what was kept, and no other file', async () => {
    const folder = scratch();
    const store = new FileCheckpointStore(folder);
    mkdirSync(folder, { recursive: true });
    mkdirSync(path.join(store.fileOf('a'), 'in the way'), { recursive: true });
    await expect(store.save('a', 'text')).rejects.toThrow();
    expect(readdirSync(folder)).toEqual([path.basename(store.fileOf('a'))]);
  });

  it('[CLIENT-FILE] a process that is killed while it saves leaves a whole text', async () => {
    const folder = scratch();
    const store = new FileCheckpointStore(folder);
    const script = path.join(path.dirname(folder), 'save.ts');
    const module = fileURLToPath(new URL('../../libs/client/src/node/index.ts', import.meta.url));
    writeFileSync(
      script,
      `import { FileCheckpointStore } from ${JSON.stringify(module)};
      const store = new FileCheckpointStore(${JSON.stringify(folder)});
      for (let n = 0; ; n++) await store.save('a', JSON.stringify({ n, x: String(n % 10).repeat(200_000) }));`,
    );
    for (let round = 0; round < 6; round++) {
      const child = spawn(process.execPath, ['--conditions=@throughline/source', script], { stdio: 'ignore' });
      await waitUntil('the first save', async () => (await store.load('a')) !== undefined, 20_000);
      await pause(20 + 13 * round);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const { n, x } = JSON.parse(readFileSync(store.fileOf('a'), 'utf8')) as { n: number; x: string };
      expect(x).toBe(String(n % 10).repeat(200_000));
      await store.remove('a');
    }
  }, 60_000);
});
