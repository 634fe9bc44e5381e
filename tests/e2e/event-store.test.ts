/** Servers that keep the official SDK's own transport, on a durable event store: killed, started again, resumed. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@throughline/testkit';
import { makeScratchFolder, RawClient, waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { createRecordingFetch } from './recording-fetch.ts';

const START_MS = 60_000;
const GUIDE = fileURLToPath(new URL('../../docs/guides/event-store.md', import.meta.url));
const serverFile = (line: string): string => fileURLToPath(new URL(`fixtures/sdk-server-${line}.ts`, import.meta.url));

interface SdkProcess extends AsyncDisposable {
  /** SIGKILL. */
  kill(): Promise<void>;
}

async function start(line: string, port: number, folder: string, secret: string): Promise<SdkProcess> {
  const child: ChildProcess = spawn(
    process.execPath,
    ['--conditions=@throughline/source', serverFile(line), String(port), path.join(folder, 'events.db')],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, MCP_SESSION_SECRET: secret } },
  );
  let said = '';
  let isReady = false;
  child.stdout?.once('data', () => {
    isReady = true;
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4096);
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  await waitUntil('the server to be ready', () => isReady || child.exitCode !== null, START_MS);
  if (!isReady) throw new Error(`the server ended: ${said}`);
  return { kill, [Symbol.asyncDispose]: kill };
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, n) => n + 1);

describe.each(CLIENT_LINES)('a server on the transport of the SDK %s with a durable event store', (line) => {
  it(
    '[EVS-KILL] is killed and started again: its official client resumes by Last-Event-ID, and nothing is lost or repeated',
    { timeout: 180_000 },
    async () => {
      using folder = makeScratchFolder();
      const port = await findFreePort();
      const url = `http://127.0.0.1:${port}/mcp`;
      const secret = randomBytes(32).toString('base64url');
      await using resources = new AsyncDisposableStack();
      const first = resources.use(await start(line, port, folder.path, secret));
      const restarted = Promise.withResolvers<null>();
      // What the client asks for after the cut waits until the server is back.
      const recording = createRecordingFetch({
        pick: () => url,
        rewriteCursor: async (cursor) => {
          await restarted.promise;
          return cursor;
        },
      });
      const client = resources.use(await connectOfficial(line, { fetch: recording.fetch }));
      await client.callTool('say', { from: 1, count: 3 });
      await waitUntil('the first three', () => client.logged.length === 3);
      // A call whose connection breaks in its middle: what it says after that, and its answer, are in the log alone.
      const raw = await RawClient.connect(url);
      const call = await raw.callTool(url, 'work', { count: 6, intervalMs: 40 }, 'call-1');
      const { id: cursor = '' } = await call.until('the second step', ({ data }) => data.includes('"progress":2'));
      call.cut();
      recording.cut();
      expect(await client.callTool('say', { from: 4, count: 20 })).toBe('said 20');
      await new Promise((resolve) => setTimeout(resolve, 500));
      await first.kill();

      resources.use(await start(line, port, folder.path, secret));
      restarted.resolve(null);
      await waitUntil('what was said while the client was away', () => client.logged.length >= 23, START_MS);
      expect(client.logged).toEqual(upTo(23));
      // The session goes on: calls, and the standalone stream that was resumed.
      expect(await client.callTool('say', { from: 24, count: 2 })).toBe('said 2');
      await waitUntil('what is said live', () => client.logged.length >= 25, START_MS);
      expect(client.logged).toEqual(upTo(25));
      const cursors = recording.answers.flatMap(({ lastEventId }) => lastEventId ?? []);
      expect(cursors.length).toBeGreaterThan(0);

      const resumed = await raw.resume(url, cursor);
      await within(
        'the answer',
        resumed.until('the answer', ({ data }) => data.includes('"result"')),
        START_MS,
      );
      const steps = resumed.items.flatMap(({ data }) => (data === '' ? [] : [JSON.parse(data) as Step]));
      expect(steps.map(({ params, result }) => params?.progress ?? result?.content[0]?.text)).toEqual([
        3,
        4,
        5,
        6,
        'worked 6',
      ]);
      resumed.cut();
      const sessionId = client.sessionId() ?? '';
      await client.terminate();
      const gone = await RawClient.of(sessionId).request(url, 'ping');
      expect(gone.status).toBe(404);
    },
  );
});

interface Step {
  readonly params?: { readonly progress: number };
  readonly result?: { readonly content: readonly { readonly text: string }[] };
}

describe('docs/guides/event-store.md', () => {
  it('[EVS-GUIDE] each line that its migration adds is a line of the server that is killed above', () => {
    const [diff = ''] = /(?<=```diff\n)[^]*?(?=```)/u.exec(readFileSync(GUIDE, 'utf8')) ?? [];
    const server = readFileSync(serverFile('v1'), 'utf8').replaceAll(/\s+/gu, ' ');
    const added = diff
      .split('\n')
      .filter((row) => row.startsWith('+'))
      .map((row) => row.slice(1).trim());
    expect(added.length).toBeGreaterThan(5);
    expect(added.length).toBeLessThan(25);
    for (const row of added) expect(server).toContain(row.replaceAll(/\s+/gu, ' '));
  });
});
