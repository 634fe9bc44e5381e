import process from 'node:process';
import { makeScratchFolder, startThroughline, waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import createServerV1 from './fixtures/later-v1.ts';
import createServerV2 from './fixtures/later-v2.ts';
import { EVERYTHING_SERVER } from './fixtures/paths.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { showLogsOnFailure } from './show-logs.ts';
import { serveOverSdkHttp } from '../../services/worker/src/host/testing/sdk-http-server.ts';

it('[E2E-PUBLISHED] a published stdio server is served to official clients by one command', async () => {
  using folder = makeScratchFolder();
  await using serve = await startThroughline('serve', {
    folder: folder.path,
    args: ['--stdio', `"${process.execPath}" "${EVERYTHING_SERVER}" stdio`],
  });
  showLogsOnFailure(serve);
  for (const line of CLIENT_LINES) {
    await using client = await connectOfficial(line, { url: serve.url });
    expect(client.serverName()).toBe('mcp-servers/everything');
    expect(await client.toolNames()).toContain('echo');
    expect(await client.callTool('echo', { message: 'through the log' })).toBe('Echo: through the log');
    const steps: number[] = [];
    const done = await client.callTool(
      'trigger-long-running-operation',
      { duration: 0.2, steps: 4 },
      { onProgress: (step) => steps.push(step) },
    );
    expect(done).toContain('Duration: 0.2 seconds, Steps: 4');
    expect(steps).toEqual([1, 2, 3, 4]);
    await client.terminate();
  }
  expect(await serve.stop()).toEqual({ code: 0, signal: null });
}, 120_000);

describe.each(CLIENT_LINES)('an existing Streamable HTTP server of SDK %s', (line) => {
  it('[E2E-UPSTREAM] is served through its URL, over broken connections, and its lost session ends ours', async () => {
    await using resources = new AsyncDisposableStack();
    const upstream = await serveOverSdkHttp(line === 'v1' ? { v1: createServerV1 } : { v2: createServerV2 });
    resources.defer(() => upstream.close());
    const folder = resources.use(makeScratchFolder());
    const serve = resources.use(
      await startThroughline('serve', { folder: folder.path, args: ['--upstream', upstream.url] }),
    );
    showLogsOnFailure(serve);
    const client = resources.use(await connectOfficial(line, { url: serve.url }));
    expect(client.serverName()).toBe(`fixture-${line}`);
    expect(await client.callTool('echo', { text: 'upstream' })).toBe('upstream');
    expect(await client.callTool('ask', { question: 'what?' })).toBe('accept {"answer":"forty-two"}');
    expect(await client.callTool('sample', { prompt: 'say it' })).toContain('sampled');
    await client.callTool('notify_later', { text: 'later', ms: 10 });
    await waitUntil('the log message', () => client.logged.includes('later'));

    const steps: number[] = [];
    const counted = client.callTool(
      'countdown',
      { from: 30, intervalMs: 20 },
      { onProgress: (step) => steps.push(step) },
    );
    await waitUntil('the first steps', () => steps.length >= 3);
    upstream.cutConnections();
    expect(await within('the call over a broken connection', counted)).toBe('done 30');
    expect(steps).toEqual(Array.from({ length: 30 }, (_, step) => step + 1));

    upstream.forgetSessions();
    await expect(client.callTool('echo', { text: 'nobody there' })).rejects.toThrow();
    // Not silently a new one: the client is told to start anew, and can.
    await waitUntil('the end of the session', () =>
      client.ping().then(
        () => false,
        (error: unknown) => [(error as { code?: unknown }).code, (error as { status?: unknown }).status].includes(404),
      ),
    );
    const again = resources.use(await connectOfficial(line, { url: serve.url }));
    expect(await again.callTool('echo', { text: 'anew' })).toBe('anew');
  }, 120_000);
});
