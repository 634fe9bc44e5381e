/** Official clients, a real identity provider, the product as a process, and a connection that fails between them. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { findFreePort, startFaultLink } from '@throughline/testkit';
import type { FaultLink } from '@throughline/testkit';
import { startIdentityProvider } from '@throughline/testkit/identity-provider';
import type { IdentityProvider } from '@throughline/testkit/identity-provider';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerHandshake, sendJson, serveScripted } from '../../services/worker/src/host/testing/scripted-server.ts';
import type { ScriptedServer } from '../../services/worker/src/host/testing/scripted-server.ts';
import { KEEPING_STDIO, WHOAMI_SERVER } from './fixtures/paths.ts';
import { startBridge } from './bridge-process.ts';
import { logIn } from './oauth-login.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { createRecordingFetch } from './recording-fetch.ts';
import { showLogsOnFailure } from './show-logs.ts';

const folder = makeScratchFolder();
const keptByChild = path.join(folder.path, 'child.txt');
let provider: IdentityProvider;
let upstream: ScriptedServer;
let served: ThroughlineProcess;
let link: FaultLink;
/** As clients know it: behind the link. */
let url: string;

beforeAll(async () => {
  const port = await findFreePort();
  provider = await startIdentityProvider();
  upstream = await serveScripted((request, response) => {
    if (answerHandshake(request, response)) return;
    if (request.method !== 'POST') response.writeHead(405).end();
    else sendJson(response, { jsonrpc: '2.0', id: request.message['id'], result: { content: [] } });
  });
  const child = [process.execPath, KEEPING_STDIO, keptByChild].map((word) => JSON.stringify(word)).join(' ');
  writeFileSync(
    path.join(folder.path, 'throughline.yaml'),
    `auth:
  issuers:
    - { issuer: ${provider.issuer}, jwksUrl: ${provider.jwksUrl} }
  scopes: [mcp]
  clockTolerance: 0s
  expiredStreams: finish-calls
publicUrl: http://127.0.0.1:${port}
servers:
  whoami: { module: ${JSON.stringify(WHOAMI_SERVER)} }
  child: { stdio: ${JSON.stringify(child)} }
  upstream: { upstream: "${upstream.url}" }
`,
  );
  served = await startThroughline('serve', { folder: folder.path, args: ['--log-level', 'debug'] });
  const target = { host: '127.0.0.1', port: Number(new URL(served.url).port) };
  link = await startFaultLink({ port, target: () => target });
  url = `http://127.0.0.1:${port}/mcp/whoami`;
}, 120_000);
afterAll(async () => {
  await link?.stop();
  await served?.[Symbol.asyncDispose]();
  await upstream?.close();
  await provider?.close();
  folder[Symbol.dispose]();
}, 60_000);

/** As the wire sees one who has this token. */
function bearer(token: string): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { Authorization: `Bearer ${token}` } };
}

it('[E2E-AUTH] [CONNECT-LOGIN] a client behind `throughline connect` is let in once a person has logged in, and goes on over a lost connection', async () => {
  showLogsOnFailure(served);
  const bridge = startBridge(url, ['--state-folder', path.join(folder.path, 'state')], { cwd: folder.path });
  const begun = bridge.initialize();
  const page = await waitUntil(
    'the address',
    () => /^http:\/\/127\.0\.0\.1:\d+\/auth\?\S+$/m.exec(bridge.stderr())?.[0],
    60_000,
  );
  expect((await fetch(await provider.authorize(page, 'alice'))).status).toBe(200);
  expect((await begun).result).toBeDefined();
  const steps = (): unknown[] =>
    bridge.messages
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => params?.['progress']);
  bridge.call(1, 'countdown', { from: 20, intervalMs: 50 });
  await waitUntil('the first steps', () => steps().length > 3, 60_000);
  link.reset();
  expect((await bridge.answer(1)).result).toMatchObject({ content: [{ text: 'done 20' }] });
  expect(steps()).toEqual(Array.from({ length: 20 }, (_, step) => step + 1));
  bridge.kill();
  await bridge.ended();
}, 120_000);

describe.each(CLIENT_LINES)('the official client %s', (line) => {
  it('[E2E-AUTH] finds the provider, registers, logs in, calls, loses its connection, and resumes with a renewed token', async () => {
    showLogsOnFailure(served);
    const before = provider.requests.length;
    const login = await logIn(line, provider, url, 'alice');
    const asked = provider.requests.slice(before);
    expect(asked).toContain('POST /reg');
    expect(asked).toContain('POST /token');
    expect(login.authorizationUrl?.searchParams.get('resource')).toBe(url);
    const recorded = createRecordingFetch({ pick: () => url });
    await using client = await connectOfficial(line, { url, login, fetch: recorded.fetch });
    expect(await client.callTool('whoami')).toMatch(/^[A-Za-z0-9_-]{22}$/);

    const [first] = [login.accessToken];
    const steps: number[] = [];
    const call = client.callTool(
      'countdown',
      { from: 40, intervalMs: 100 },
      {
        onProgress: (step) => {
          steps.push(step);
          if (step !== 5) return;
          // What a client does when its token is about to end; then its connection is lost.
          void renew(login).then(() => {
            link.reset();
          });
        },
      },
    );
    expect(await call).toBe('done 40');
    expect(steps).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    expect(login.accessToken).not.toBe(first);
    const resumes = recorded.answers.filter(({ lastEventId }) => lastEventId !== null);
    expect(resumes.length).toBeGreaterThan(0);
    expect(new Set(resumes.map(({ status }) => status))).toEqual(new Set([200]));
  }, 120_000);

  async function renew(login: Awaited<ReturnType<typeof logIn>>): Promise<void> {
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: login.clientInformation()?.client_id ?? '',
      refresh_token: login.tokens()?.refresh_token ?? '',
      resource: url,
    });
    const response = await fetch(`${provider.issuer}/token`, { method: 'POST', body });
    login.saveTokens({
      ...login.tokens(),
      ...((await response.json()) as { access_token: string; token_type: string }),
    });
  }

  it('[E2E-AUTH] is asked for another token when its own has ended, renews it by itself and goes on', async () => {
    showLogsOnFailure(served);
    provider.setAccessTokenSeconds(4);
    try {
      const login = await logIn(line, provider, url, 'alice');
      await using client = await connectOfficial(line, { url, login });
      const before = login.received.length;
      // Longer than the token lives: the call was allowed when it was made.
      expect(await client.callTool('countdown', { from: 60, intervalMs: 100 })).toBe('done 60');
      expect(await client.callTool('whoami')).toMatch(/^[A-Za-z0-9_-]{22}$/);
      expect(login.received.length).toBeGreaterThan(before);
    } finally {
      provider.setAccessTokenSeconds(3600);
    }
  }, 120_000);
});

it('[E2E-AUTH] a v2 client whose token has ended while it was away resumes its call with another', async () => {
  provider.setAccessTokenSeconds(5);
  try {
    const login = await logIn('v2', provider, url, 'alice');
    const first = login.accessToken;
    await using client = await connectOfficial('v2', { url, login });
    const steps: number[] = [];
    const call = client.callTool(
      'countdown',
      { from: 100, intervalMs: 100 },
      { onProgress: (step) => steps.push(step) },
    );
    await waitUntil('the token to end', () => endOf(first) < Date.now(), 20_000);
    link.reset();
    expect(await call).toBe('done 100');
    expect(steps).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(login.accessToken).not.toBe(first);
  } finally {
    provider.setAccessTokenSeconds(3600);
  }
}, 120_000);

it('[E2E-AUTH-STOLEN] another user who has the session id and the cursor gets 404, and the session lives on', async () => {
  showLogsOnFailure(served);
  const alice = await logIn('v2', provider, url, 'alice');
  const mallory = await logIn('v2', provider, url, 'mallory');
  const client = await RawClient.connect(url, bearer(alice.accessToken));
  const call = await client.callTool(url, 'countdown', { from: 30, intervalMs: 100 });
  const { id: cursor = '' } = await call.until('a step', ({ data }) => data.includes('"progress":2,'));
  const thief = RawClient.of(client.sessionId, bearer(mallory.accessToken));
  const attempts = [
    thief.resume(url, cursor),
    thief.listen(url),
    thief.callTool(url, 'whoami'),
    thief.notify(url, 'notifications/cancelled', { requestId: 2 }),
    thief.end(url),
  ];
  for (const attempt of await Promise.all(attempts)) {
    expect(attempt.status).toBe(404);
    expect(await attempt.text()).not.toMatch(/alice|principal|token/i);
  }
  await call.until('the result', ({ data }) => data.includes('done 30'));
  const nobody = RawClient.of(client.sessionId);
  for (const attempt of [nobody.resume(url, cursor), nobody.listen(url), nobody.end(url)])
    expect((await attempt).status).toBe(401);
}, 120_000);

it('[E2E-AUTH-STOLEN] a token for one server is none for another', async () => {
  const login = await logIn('v2', provider, url, 'alice');
  const other = url.replace('/whoami', '/child');
  await expect(RawClient.connect(other, bearer(login.accessToken))).rejects.toThrow(/401/);
}, 60_000);

it('[E2E-AUTH-SECRET] no token is in the log, in what the processes log or measure, or in what servers are given', async () => {
  const tokens: string[] = [];
  for (const server of ['whoami', 'child', 'upstream']) {
    const own = url.replace('whoami', server);
    const login = await logIn('v1', provider, own, 'alice');
    await using client = await connectOfficial('v1', { url: own, login });
    await client.callTool(server === 'child' ? 'keep' : 'whoami');
    tokens.push(login.accessToken, login.tokens()?.refresh_token ?? '');
    // Refused ones as well.
    const refused = `${login.accessToken.slice(0, -4)}AAAA`;
    await expect(RawClient.connect(own, bearer(refused))).rejects.toThrow(/401/);
    expect((await fetch(`${own}?access_token=${login.accessToken}`, { method: 'POST' })).status).toBe(400);
  }
  const parts = tokens.flatMap((token) => token.split('.')).filter((part) => part.length > 20);
  expect(parts.length).toBeGreaterThan(10);

  const logFolder = path.join(folder.path, '.throughline');
  const log = readdirSync(logFolder).map((name) => readFileSync(path.join(logFolder, name), 'latin1'));
  const child = readFileSync(keptByChild, 'utf8');
  const seenUpstream = JSON.stringify(upstream.requests);
  const metrics = await (await fetch(`${served.adminUrl}/metrics`)).text();
  // Each holds what it should: a search in nothing finds nothing.
  expect(log.join('')).toContain('tools/call');
  expect(child).toContain('tools/call');
  expect(seenUpstream).toContain('tools/call');
  expect(metrics).toContain('throughline_gateway_tokens_refused_total{reason="signature"}');
  expect(served.logs().length).toBeGreaterThan(100);
  for (const text of [...log, child, seenUpstream, metrics, served.logs(), served.ready])
    for (const part of parts) expect(text.includes(part)).toBe(false);
  for (const { headers } of upstream.requests) expect(headers.authorization).toBeUndefined();
}, 120_000);

/** Wall-clock milliseconds. */
function endOf(token: string): number {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { readonly exp: number };
  return claims.exp * 1000;
}
