import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { FileCheckpointStore } from '@throughline/client/node';
import { startFaultyServer } from '@throughline/client/testing';
import { makeScratchFolder, startBalancer, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Balancer, Cluster } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from 'vitest';
import { COMMAND, commandLine, connectThrough, killBridge, readPlace } from './connect-client.ts';
import type { ConnectedClient, ConnectThrough } from './connect-client.ts';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES } from './official-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

// Each test starts processes: a loaded machine takes its time for them.
vi.setConfig({ testTimeout: 240_000 });
const LONG_MS = 60_000;

/** The end of a session is waited for only as long as a client waits for its server to end. */
const TOO_BUSY = /^throughline connect: the server did not take the end of the session in time.*\n/;

const STEPS = 30;
const EXPECTED = Array.from({ length: STEPS }, (_, step) => step + 1);

const resources = new AsyncDisposableStack();
let cluster: Cluster;
let balancer: Balancer;
/** The gateway that gets what comes in; `null`: any. */
let chosen: number | null = null;

beforeAll(async () => {
  cluster = resources.use(
    await startCluster({
      log: makeLog,
      workers: 1,
      gatewayArgs: ['--retry', '60ms'],
      workerArgs: ['--module', SERVER_V2],
    }),
  );
  balancer = resources.use(
    await startBalancer(() =>
      cluster.gateways.filter((gateway, place) => gateway.isRunning() && (chosen ?? place) === place),
    ),
  );
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

interface Setting {
  readonly through: ConnectThrough;
  readonly stateFolder: string;
  /** Where the place of these settings is kept. */
  readonly placeFile: string;
}

function makeSetting(url: string, more: readonly string[] = []): Setting {
  const folder = makeScratchFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const stateFolder = path.join(folder.path, 'state');
  return {
    through: { url, cwd: folder.path, args: ['--state-folder', stateFolder, '--place', 'here', ...more] },
    stateFolder,
    placeFile: new FileCheckpointStore(stateFolder).fileOf(`${url}\nhere`),
  };
}

function showStderr(client: ConnectedClient): void {
  showLogsOnFailure({ logs: () => `— bridge\n${client.stderr()}` });
}

/** What the server makes of a session that somebody names. */
async function statusOf(sessionId: string): Promise<number> {
  const answer = await fetch(cluster.urls()[0]!, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': sessionId,
      'Mcp-Protocol-Version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: `look-${Math.random()}`, method: 'ping' }),
  });
  await answer.body?.cancel();
  return answer.status;
}

describe.each(CLIENT_LINES)('client %s behind throughline connect', (line) => {
  it('[CONNECT-THROUGH] lists, calls, gets progress and log messages, answers sampling and elicitation, and cancels', async () => {
    showLogsOnFailure(cluster);
    const { through, placeFile } = makeSetting(balancer.url);
    const client = await connectThrough(line, through);
    showStderr(client);
    expect(await client.toolNames()).toContain('countdown');
    expect(await client.callTool('countdown', { from: 5, intervalMs: 1 })).toBe('done 5');
    expect(client.steps).toEqual([1, 2, 3, 4, 5]);
    expect(await client.callTool('ask', { question: 'how many?' })).toContain('forty-two');
    expect(await client.callTool('sample', { prompt: 'say' })).toContain('sampled');
    await client.callTool('notify', { text: 'heard' });
    await waitUntil('the log message', () => client.logged.includes('heard'), LONG_MS);
    const cancel = new AbortController();
    const cancelled = client.callTool('countdown', { from: 1000, intervalMs: 20 }, cancel.signal);
    await waitUntil('its first step', () => client.steps.length > 6, LONG_MS);
    cancel.abort();
    await expect(within('the cancelled call', cancelled, LONG_MS)).rejects.toThrow();
    const steps = client.steps.length;
    expect(await client.callTool('echo', { text: 'after' })).toBe('after');
    await pause(200);
    expect(client.steps.length - steps).toBeLessThanOrEqual(2);
    const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
    await client.close();
    expect(client.stderr().replace(TOO_BUSY, '')).toBe('');
    // The client has said goodbye.
    expect(existsSync(placeFile)).toBe(false);
    await waitUntil('the end of its session', async () => (await statusOf(place.sessionId)) === 404, LONG_MS);
  });

  it('[CONNECT-KILLS] a call goes on when the gateway that serves it is killed: each step once, in order', async () => {
    showLogsOnFailure(cluster);
    const { through } = makeSetting(balancer.url);
    await using client = await connectThrough(line, through);
    showStderr(client);
    const place = line === 'v1' ? 0 : 1;
    onTestFinished(() => {
      chosen = null;
    });
    chosen = place;
    const call = client.callTool('countdown', { from: STEPS, intervalMs: 40 });
    await waitUntil('the first steps', () => client.steps.length >= 3, LONG_MS);
    await cluster.gateways[place]!.kill();
    chosen = null;
    expect(await within('the call', call, LONG_MS)).toBe(`done ${STEPS}`);
    expect(client.steps).toEqual(EXPECTED);
    await cluster.startGateway(place);
  });

  it('[CONNECT-RESTART] a bridge that is killed leaves its place, and the next one goes on there: what was said meanwhile is heard once', async () => {
    showLogsOnFailure(cluster);
    const { through, placeFile } = makeSetting(balancer.url);
    const before = await connectThrough(line, through);
    showStderr(before);
    await before.callTool('notify', { text: 'before' });
    await waitUntil('the message', () => before.logged.includes('before'), LONG_MS);
    const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
    await before.callTool('notify_later', { text: 'meanwhile', ms: 3000 });
    const call = before.callTool('countdown', { from: 60, intervalMs: 50 }).catch((error: unknown) => error);
    await waitUntil('its first steps', () => before.steps.length > 2, LONG_MS);
    await killBridge(before);
    expect(await call).toBeInstanceOf(Error);

    await using after = await connectThrough(line, through);
    showStderr(after);
    expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
    await waitUntil('what was said meanwhile', () => after.logged.includes('meanwhile'), LONG_MS);
    expect(after.logged).toEqual(['meanwhile']);
    expect(readPlace(placeFile)?.sessionId).toBe(place.sessionId);
    expect(after.stderr()).toContain('goes on in the session of the process before');
    await waitUntil(
      'the end of the former call',
      () => after.stderr().includes('a call that a former process made (tools/call) has ended with a result'),
      LONG_MS,
    );
    expect(after.steps).toEqual([]);
  });
});

it('[CONNECT-OTHER] another client in the same place gets a session of its own, and the former one is ended', async () => {
  showLogsOnFailure(cluster);
  const { through, placeFile } = makeSetting(balancer.url);
  const before = await connectThrough('v2', through);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  await killBridge(before);
  await using after = await connectThrough('v2', { ...through, clientName: 'another' });
  showStderr(after);
  expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
  expect(readPlace(placeFile)?.sessionId).not.toBe(place.sessionId);
  await waitUntil('the end of the former', async () => (await statusOf(place.sessionId)) === 404, LONG_MS);
  expect(after.stderr()).toContain('the client is another one than before');
});

it('[CONNECT-OTHER] --fresh ends the session that was left behind', async () => {
  const { through, placeFile } = makeSetting(balancer.url);
  const before = await connectThrough('v1', through);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  await killBridge(before);
  await using after = await connectThrough('v1', { ...through, args: [...through.args, '--fresh'] });
  expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
  expect(readPlace(placeFile)?.sessionId).not.toBe(place.sessionId);
  expect(await statusOf(place.sessionId)).toBe(404);
});

it('[CONNECT-GONE] a session that has ended meanwhile is not gone on with: the client is told what the server says now', async () => {
  const { through, placeFile } = makeSetting(balancer.url);
  const before = await connectThrough('v1', through);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  await killBridge(before);
  await fetch(cluster.urls()[0]!, { method: 'DELETE', headers: { 'Mcp-Session-Id': place.sessionId } });
  await using after = await connectThrough('v1', through);
  expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
  expect(after.listChanges()).toBe(0);
  expect(after.stderr()).toBe('');
});

it('[CONNECT-CLOSE] --on-close keep leaves the session to the next process, and so does SIGTERM, which ends with code 0', async () => {
  const { through, placeFile } = makeSetting(balancer.url, ['--on-close', 'keep']);
  const before = await connectThrough('v1', through);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  await before.close();
  const ending = makeSetting(balancer.url);
  const stopped = spawn(COMMAND, commandLine(balancer.url, [...ending.through.args]), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  stopped.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } })}\n`,
  );
  await once(stopped.stdout, 'data');
  await waitUntil('its place', () => readPlace(ending.placeFile), LONG_MS);
  stopped.kill('SIGTERM');
  expect(await once(stopped, 'exit')).toEqual([0, null]);
  expect(await statusOf(readPlace(ending.placeFile)?.sessionId ?? '')).toBe(200);
  expect(readdirSync(ending.stateFolder)).toEqual([path.basename(ending.placeFile)]);

  await using after = await connectThrough('v1', through);
  expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
  expect(readPlace(placeFile)?.sessionId).toBe(place.sessionId);
});

it('[CONNECT-ALONE] a second client in the same place gets a session of its own, and says so', async () => {
  const { through, placeFile } = makeSetting(balancer.url);
  await using first = await connectThrough('v1', through);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  const second = await connectThrough('v1', through);
  expect(await second.callTool('echo', { text: 'two' })).toBe('two');
  expect(second.stderr()).toContain('give each client a --place of its own');
  await second.close();
  expect(await first.callTool('echo', { text: 'one' })).toBe('one');
  expect(readPlace(placeFile)?.sessionId).toBe(place.sessionId);
});

it('[CONNECT-REINIT] a session that is lost is begun anew: the call fails and says that it may have run, lists are told as changed, the next call works', async () => {
  showLogsOnFailure(cluster);
  const { through, placeFile } = makeSetting(balancer.url);
  await using client = await connectThrough('v2', through);
  showStderr(client);
  const place = await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  const call = client.callTool('countdown', { from: 500, intervalMs: 20 });
  await waitUntil('its first steps', () => client.steps.length > 2, LONG_MS);
  await fetch(cluster.urls()[0]!, { method: 'DELETE', headers: { 'Mcp-Session-Id': place.sessionId } });
  const error = await within(
    'the call',
    call.then(
      () => null,
      (reason: unknown) => reason as { data?: unknown },
    ),
    60_000,
  );
  expect(error).not.toBeNull();
  expect(await within('the next call', client.callTool('echo', { text: 'again' }), 60_000)).toBe('again');
  await waitUntil('the changed list', () => client.listChanges() > 0, LONG_MS);
  expect(client.stderr()).toContain('the session is over');
  expect(client.stderr()).toContain('a new session was begun');
  expect(readPlace(placeFile)?.sessionId).not.toBe(place.sessionId);
});

it('[CONNECT-REFUSES] a stream with a gap is refused out loud: nothing after the gap reaches the client, and the call says that it may have run', async () => {
  await using server = await startFaultyServer({ fault: 'gap-continuous-ids' });
  const { through } = makeSetting(server.url);
  await using client = await connectThrough('v2', through);
  showStderr(client);
  const call = client.callTool('count', { to: 10 });
  await expect(within('the call', call, LONG_MS)).rejects.toMatchObject({
    data: { type: 'ResumptionRejected', mayHaveRun: true },
  });
  // Another pipe than the error came over.
  await waitUntil('it is said', () =>
    /the session is over: Resumption rejected \(\S+\): .*1 call failed, 1 of which may have run/.test(client.stderr()),
  );
  expect(client.logged.length).toBeLessThan(10);
  expect(await client.callTool('echo', { text: 'again' })).toContain('again');
});

it.each<[code: number, what: string, url: string, more: string[], stderr: string]>([
  [
    3,
    'out of reach',
    'http://127.0.0.1:9/mcp',
    ['--start-within', '400ms'],
    'there is no session: the server did not answer initialize within 0.4 s',
  ],
  [3, 'refused', 'https-is-not-needed', [], 'there is no session'],
  [2, 'without its token', 'http://127.0.0.1:9/mcp', ['--token-file', 'missing'], 'there is no such file'],
])(
  '[CONNECT-EXIT] code %i when the server is %s, which stderr says',
  async (code, what, url, more, stderr) => {
    const target = what === 'refused' ? cluster.urls()[0]!.replace('/mcp', '/nothing') : url;
    const { through } = makeSetting(target, more);
    const child = spawn(COMMAND, commandLine(target, through.args), { cwd: through.cwd, stdio: 'pipe' });
    let out = '';
    let err = '';
    child.stdout.on('data', (data: Buffer) => (out += data.toString()));
    child.stderr.on('data', (data: Buffer) => (err += data.toString()));
    child.stdin.on('error', () => undefined);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })}\n`);
    const [ended] = (await within('its end', once(child, 'close'), 60_000)) as [number];
    expect(ended, err).toBe(code);
    expect(err).toContain(stderr);
    if (code === 3) expect(JSON.parse(out)).toMatchObject({ id: 1, error: {} });
    else expect(out).toBe('');
  },
  90_000,
);

it('[CONNECT-EXIT] code 0 when stdin is closed at once, and when nothing was ever asked the place of another process stays', async () => {
  const { through, placeFile } = makeSetting(balancer.url);
  const before = await connectThrough('v1', through);
  await waitUntil('the place', () => readPlace(placeFile), LONG_MS);
  await killBridge(before);
  const child = spawn(COMMAND, commandLine(balancer.url, through.args), { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end();
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(readPlace(placeFile)).not.toBeNull();
});
