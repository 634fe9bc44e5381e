/** `throughline connect` before a server that wants a login of a real identity provider. The test is the person. */
import { chmodSync, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startIdentityProvider } from '@throughline/testkit/identity-provider';
import type { IdentityProvider } from '@throughline/testkit/identity-provider';
import { startGuard } from '@throughline/testkit/login-guard';
import type { Guard } from '@throughline/testkit/login-guard';
import { makeScratchFolder, startThroughline, waitUntil } from '@throughline/testkit/processes';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { startBridge } from './bridge-process.ts';
import type { BridgeProcess } from './bridge-process.ts';

vi.setConfig({ testTimeout: 240_000 });
const LONG_MS = 60_000;

const resources = new AsyncDisposableStack();
let provider: IdentityProvider;
let serverUrl: string;
let guard: Guard;
let folder: string;

beforeAll(async () => {
  provider = await startIdentityProvider({ rotates: true });
  resources.defer(() => provider.close());
  const scratch = makeScratchFolder();
  resources.defer(() => scratch[Symbol.dispose]());
  serverUrl = resources.use(await startThroughline('serve', { folder: scratch.path })).url;
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

beforeEach(async () => {
  guard = await startGuard({ issuer: provider.issuer, jwksUrl: provider.jwksUrl, upstream: serverUrl });
  const scratch = makeScratchFolder();
  folder = scratch.path;
  onTestFinished(async () => {
    await guard[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  });
});

function start(...args: readonly string[]): BridgeProcess {
  return startBridge(guard.url, ['--state-folder', path.join(folder, 'state'), ...args], { cwd: folder });
}

/** The address that the person is shown. */
async function pageOf(bridge: BridgeProcess): Promise<string> {
  return await waitUntil(
    'the address',
    () => /^http:\/\/127\.0\.0\.1:\d+\/auth\?\S+$/m.exec(bridge.stderr())?.[0],
    LONG_MS,
  );
}

async function logIn(bridge: BridgeProcess): Promise<void> {
  expect((await fetch(await provider.authorize(await pageOf(bridge), 'alice'))).status).toBe(200);
}

function stepsOf({ messages }: BridgeProcess, id: number): unknown[] {
  return messages
    .filter(({ method, params }) => method === 'notifications/progress' && params?.['progressToken'] === `of ${id}`)
    .map(({ params }) => params?.['progress']);
}

function tokensOf(): readonly string[] {
  const logins = path.join(folder, 'state', 'logins');
  return readdirSync(logins).flatMap((name) => {
    const { tokens } = JSON.parse(readFileSync(path.join(logins, name), 'utf8')) as { tokens: Record<string, string> };
    return [tokens['access_token']!, tokens['refresh_token']!];
  });
}

it('[CONNECT-LOGIN] [CONNECT-LOGIN-REFRESH] a person logs in while the client waits; a token that is refused in the middle of a call is renewed, and each step comes once', async () => {
  const bridge = start();
  const begun = bridge.initialize();
  await logIn(bridge);
  expect((await begun).result).toBeDefined();
  bridge.call(1, 'countdown', { from: 40, intervalMs: 40 });
  await waitUntil('the first steps', () => stepsOf(bridge, 1).length > 3, LONG_MS);
  const before = tokensOf();
  guard.revoke();
  expect((await bridge.answer(1)).result).toBeDefined();
  expect(stepsOf(bridge, 1)).toEqual(Array.from({ length: 40 }, (_, step) => step + 1));
  expect(guard.cursors.length).toBeGreaterThan(0);
  const logins = path.join(folder, 'state', 'logins');
  const [file] = readdirSync(logins);
  expect(readdirSync(logins)).toEqual([expect.stringMatching(/^[0-9a-f]{32}\.json$/)]);
  expect(statSync(path.join(logins, file!)).mode & 0o777).toBe(0o600);
  const said = `${bridge.stderr()}${bridge.stdout()}`;
  expect(said).not.toContain('the session is over');
  for (const token of [...before, ...tokensOf()]) expect(said).not.toContain(token);

  // The next process of the same client needs no person, and neither does another one.
  bridge.kill();
  await bridge.ended();
  const next = start();
  expect((await next.initialize()).result).toBeDefined();
  expect(next.stderr()).toContain('goes on in the session of the process before');
  const other = start('--place', 'elsewhere');
  expect((await other.initialize()).result).toBeDefined();
  guard.revoke();
  const tokenRequests = provider.requests.filter((line) => line === 'POST /token').length;
  next.call(2, 'countdown', { from: 2, intervalMs: 1 });
  other.call(2, 'countdown', { from: 3, intervalMs: 1 });
  expect((await next.answer(2)).result).toMatchObject({ content: [{ text: 'done 2' }] });
  expect((await other.answer(2)).result).toMatchObject({ content: [{ text: 'done 3' }] });
  expect(provider.requests.filter((line) => line === 'POST /token').length - tokenRequests).toBe(1);
  for (const process of [next, other]) expect(process.stderr()).not.toContain('asks for a login');
});

it('[CONNECT-LOGIN-ONCE] [CONNECT-EXIT] code 4 when nobody logs in: the client is told what to do as well', async () => {
  const bridge = start('--login-within', '3s', '--start-within', '2s');
  const { error } = await bridge.initialize();
  const fix = `nobody has logged in within 3 s; log in by throughline connect ${guard.url} --login now`;
  expect(error?.message).toContain(fix);
  expect(await bridge.ended()).toBe(4);
  expect(bridge.stderr()).toContain(fix);
  expect(bridge.stdout().trim().split('\n')).toHaveLength(1);
});

it('[CONNECT-LOGIN-ONCE] [CONNECT-EXIT] code 4 at once with --login never', async () => {
  const bridge = start('--login', 'never');
  expect((await bridge.initialize()).error?.message).toContain('the server asks for a login');
  expect(await bridge.ended()).toBe(4);
  expect(bridge.stderr()).not.toContain('/auth?');
});

it('[CONNECT-LOGIN-NOW] logs in and ends; later starts use it, without a person; stdin need be nobody', async () => {
  const login = start('--login', 'now');
  login.closeStdin();
  await logIn(login);
  expect(await login.ended()).toBe(0);
  expect(login.stdout()).toBe('');
  expect(login.stderr()).toContain('logged in');
  const bridge = start();
  expect((await bridge.initialize()).result).toBeDefined();
  expect(bridge.stderr()).toBe('');
  const late = start('--login', 'now', '--login-within', '300ms');
  expect(await late.ended()).toBe(4);
  expect(late.stderr()).toContain('nobody has logged in within 0.3 s');
  const none = startBridge(serverUrl, ['--login', 'now', '--state-folder', folder], { cwd: folder });
  expect(await none.ended()).toBe(0);
  expect(none.stderr()).toContain('the server asks for no login');
  // A path where nothing is proves nothing.
  const nowhere = new URL('/nowhere', serverUrl).href;
  const astray = startBridge(nowhere, ['--login', 'now', '--state-folder', folder], { cwd: folder });
  expect(await astray.ended()).toBe(3);
  expect(astray.stderr()).toContain('it answered 404; check the URL');
  const away = startBridge('http://127.0.0.1:9/mcp', ['--login', 'now', '--state-folder', folder], { cwd: folder });
  expect(await away.ended()).toBe(3);
});

it('[CONNECT-LOGIN] a client that goes away while it waits for the person ends the bridge, and the login with it', async () => {
  const bridge = start();
  void bridge.initialize().catch(() => undefined);
  const page = new URL(await pageOf(bridge));
  bridge.closeStdin();
  expect(await bridge.ended()).toBe(3);
  await expect(fetch(page.searchParams.get('redirect_uri')!)).rejects.toThrow('fetch failed');
  expect(readdirSync(path.join(folder, 'state', 'logins'))).toEqual([]);
});

it('[CONNECT-LOGIN-OPEN] the browser is opened if that is asked for, and not otherwise', async () => {
  const opened = path.join(folder, 'opened');
  const browser = path.join(folder, 'browser.sh');
  writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > ${opened}\n`);
  chmodSync(browser, 0o700);
  const env = { BROWSER: browser, DISPLAY: '', XDG_CURRENT_DESKTOP: '' };
  const args = ['--state-folder', path.join(folder, 'state')];
  const quiet = startBridge(guard.url, args, { cwd: folder, env });
  void quiet.initialize().catch(() => undefined);
  await pageOf(quiet);
  quiet.kill();
  await quiet.ended();
  expect(existsSync(opened)).toBe(false);
  const bridge = startBridge(guard.url, [...args, '--open'], { cwd: folder, env });
  void bridge.initialize().catch(() => undefined);
  const page = await pageOf(bridge);
  await waitUntil('the browser', () => existsSync(opened) && readFileSync(opened, 'utf8') === page, LONG_MS);
});
