/** Logins against a real identity provider: what a person does with a browser is done by the test. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startIdentityProvider } from '@throughline/testkit/identity-provider';
import type { IdentityProvider } from '@throughline/testkit/identity-provider';
import { startGuard } from '@throughline/testkit/login-guard';
import type { Guard } from '@throughline/testkit/login-guard';
import { waitUntil, within } from '@throughline/testkit/processes';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openLogin } from './login-credentials.ts';
import type { LoginCredentials } from './login-credentials.ts';
import { parseLogin } from './login-record.ts';
import type { LoginRecord } from './login-record.ts';
import type { LoginRequest } from './login-request.ts';
import { LoginStore } from './login-store.ts';

vi.setConfig({ testTimeout: 60_000 });
const LONG_MS = 45_000;

let provider: IdentityProvider;
let guard: Guard;
let folder: string;

beforeAll(async () => {
  provider = await startIdentityProvider();
}, 60_000);
afterAll(() => provider.close());
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-login-'));
  guard = await startGuard({ issuer: provider.issuer, jwksUrl: provider.jwksUrl, upstream: null });
  onTestFinished(async () => {
    await guard[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
});

interface Rig {
  readonly credentials: LoginCredentials;
  readonly told: string[];
  /** Addresses that were shown to the person. */
  readonly shown: URL[];
  readonly stop: AbortController;
  /** One request as the transport makes it; its status. */
  ask(how?: 'onUnauthorized' | 'renewQuietly'): Promise<number>;
  /** Until there is an address to open. */
  page(count?: number): Promise<URL>;
}

async function makeRig(more: Partial<LoginRequest> = {}, pasted: AsyncIterable<string> | null = null): Promise<Rig> {
  const told: string[] = [];
  const shown: URL[] = [];
  const stop = new AbortController();
  onTestFinished(() => {
    stop.abort();
  });
  const tell = (text: string): void => void told.push(text);
  const credentials = await openLogin({
    request: {
      serverUrl: new URL(guard.url),
      allowHttp: false,
      client: null,
      mayAsk: true,
      withinMs: LONG_MS,
      doesOpen: false,
      scope: null,
      redirectPort: null,
      ...more,
    },
    store: new LoginStore(folder, 'key', tell),
    headers: { 'X-A': 'b' },
    signal: stop.signal,
    pasted,
    tell,
    show: (url) => void shown.push(url),
  });
  return {
    credentials,
    told,
    shown,
    stop,
    ask(how = 'onUnauthorized') {
      const asked = ask(how);
      // A test that fails first does not wait for it.
      asked.catch(() => undefined);
      return asked;
    },
    page: (count = 1) => waitUntil('the address', () => shown[count - 1], LONG_MS),
  };

  async function ask(how: 'onUnauthorized' | 'renewQuietly'): Promise<number> {
    const sent = new Headers(credentials.headers());
    const answer = await fetch(guard.url, { headers: sent });
    if (answer.status !== 401 || !(await credentials[how](answer, sent))) return answer.status;
    return (await fetch(guard.url, { headers: credentials.headers() })).status;
  }
}

/** The person logs in, and the browser comes back. */
async function logIn(rig: Rig, count = 1, user = 'alice'): Promise<Response> {
  return await fetch(await provider.authorize(await rig.page(count), user));
}

async function loggedIn(more: Partial<LoginRequest> = {}): Promise<Rig> {
  const rig = await makeRig(more);
  const asked = rig.ask();
  await logIn(rig);
  expect(await within('the login', asked, LONG_MS)).toBe(204);
  return rig;
}

function file(): string {
  return new LoginStore(folder, 'key', () => undefined).file;
}

function kept(): LoginRecord {
  return parseLogin(readFileSync(file(), 'utf8'))!;
}

function refreshes(): number {
  return provider.requests.filter((line) => line === 'POST /token').length;
}

describe('a login', () => {
  it('[CONNECT-LOGIN] goes through registration, PKCE and a page on this machine, for this server alone', async () => {
    const rig = await makeRig();
    const asked = rig.ask();
    const page = await rig.page();
    expect(page.origin).toBe(provider.issuer);
    expect(Object.fromEntries(page.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: guard.url,
    });
    expect(page.searchParams.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect(page.searchParams.get('scope')?.split(' ')).toContain('mcp');
    expect(rig.credentials.isWaiting).toBe(true);
    const shown = await logIn(rig);
    expect(shown.status).toBe(200);
    expect(await shown.text()).toContain('This page can be closed');
    expect(await asked).toBe(204);
    expect(rig.credentials.isWaiting).toBe(false);
    expect(rig.credentials.headers()['X-A']).toBe('b');
    expect(rig.told.at(-1)).toBe('logged in');
  });

  it('[CONNECT-LOGIN-KEPT] is kept in a file of its owner alone; the next process asks nobody', async () => {
    await loggedIn();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual([path.basename(file())]);
    const next = await makeRig();
    expect(await next.ask()).toBe(204);
    expect(next.shown).toEqual([]);
    expect(next.told).toEqual([]);
  });

  it('[CONNECT-LOGIN-KEPT] that cannot be read is told, and a person asked', async () => {
    for (const text of ['{', '{"v":1}', 'null', JSON.stringify({ v: 2 })]) {
      writeFileSync(file(), text);
      const rig = await makeRig();
      expect(rig.told.join()).toContain('cannot be read');
      expect(rig.credentials.headers()).toEqual({ 'X-A': 'b' });
    }
  });

  it('[CONNECT-LOGIN-KEPT] that cannot be kept serves this process, and that is told', async () => {
    const real = folder;
    folder = path.join(folder, 'no-folder', 'logins');
    writeFileSync(path.join(real, 'no-folder'), '');
    const rig = await loggedIn();
    folder = real;
    expect(rig.told.join()).toContain('ends with this process');
    expect(await rig.ask()).toBe(204);
    guard.revoke();
    expect(await rig.ask()).toBe(204);
    expect(rig.shown).toHaveLength(1);
  });

  it('[CONNECT-LOGIN-REFRESH] a token that is refused is renewed once, without a person, whoever asks at the same time', async () => {
    const rig = await loggedIn();
    const before = kept().tokens;
    guard.revoke();
    const tokenRequests = refreshes();
    expect(await Promise.all([rig.ask(), rig.ask(), rig.ask('renewQuietly')])).toEqual([204, 204, 204]);
    expect(refreshes() - tokenRequests).toBe(1);
    expect(rig.shown).toHaveLength(1);
    expect(kept().tokens?.access_token).not.toBe(before?.access_token);
    expect(kept().tokens?.refresh_token).not.toBe(before?.refresh_token);
  });

  it('[CONNECT-LOGIN-SHARED] two processes renew once between them, and both go on', async () => {
    const [first, second] = [await loggedIn(), await makeRig()];
    for (let round = 0; round < 3; round++) {
      guard.revoke();
      const tokenRequests = refreshes();
      expect(await Promise.all([first.ask(), second.ask()])).toEqual([204, 204]);
      expect(refreshes() - tokenRequests).toBe(1);
    }
    expect(second.shown).toEqual([]);
  });

  it('[CONNECT-LOGIN-SHARED] while one process waits for its person the other asks nobody, and goes on with its login', async () => {
    const [first, second] = [await makeRig(), await makeRig()];
    const asked = first.ask();
    await first.page();
    const other = second.ask();
    await logIn(first);
    expect(await Promise.all([asked, other])).toEqual([204, 204]);
    expect(second.shown).toEqual([]);
  });

  it('[CONNECT-LOGIN-REFRESH] an identity provider that is away is no reason to ask a person: it is told as trouble that passes', async () => {
    const away = await startIdentityProvider();
    const own = await startGuard({ issuer: away.issuer, jwksUrl: away.jwksUrl, upstream: null });
    onTestFinished(() => own[Symbol.asyncDispose]());
    const rig = await makeRig({ serverUrl: new URL(own.url) });
    const refused = (): Response =>
      new Response(null, {
        status: 401,
        headers: {
          'WWW-Authenticate': `Bearer resource_metadata="${own.url.replace('/mcp', '')}/.well-known/oauth-protected-resource/mcp"`,
        },
      });
    const asked = rig.credentials.onUnauthorized(refused(), new Headers());
    await fetch(await away.authorize(await rig.page(), 'alice'));
    expect(await asked).toBe(true);
    await away.close();
    const sent = new Headers(rig.credentials.headers());
    await expect(rig.credentials.onUnauthorized(refused(), sent)).rejects.toMatchObject({
      name: 'LoginError',
      code: 'UNAVAILABLE',
    });
    expect(rig.shown).toHaveLength(1);
    expect(kept().tokens).not.toBeNull();
  });

  it('[CONNECT-LOGIN-REFRESH] a refresh token that is refused for good asks the person again, with the same registration', async () => {
    const rig = await loggedIn();
    const { client, tokens, ...rest } = kept();
    writeFileSync(file(), JSON.stringify({ ...rest, client, tokens: { ...tokens, refresh_token: 'worth nothing' } }));
    guard.revoke();
    const registrations = provider.requests.filter((line) => line === 'POST /reg').length;
    const asked = rig.ask();
    await logIn(rig, 2);
    expect(await asked).toBe(204);
    expect(rig.told).toContain('the kept login has ended');
    expect(provider.requests.filter((line) => line === 'POST /reg').length).toBe(registrations);
    expect(kept().client?.client_id).toBe(client?.client_id);
  });

  it('[CONNECT-LOGIN-REFRESH] a registration that the identity provider has forgotten is made anew', async () => {
    const rig = await loggedIn();
    writeFileSync(file(), JSON.stringify({ ...kept(), client: { client_id: 'forgotten' } }));
    guard.revoke();
    const asked = rig.ask();
    await logIn(rig, 2);
    expect(await asked).toBe(204);
    expect(kept().client?.client_id).not.toBe('forgotten');
  });

  it('[CONNECT-LOGIN-REFRESH] what is kept is sent to nobody but who has given it, whatever the server names now', async () => {
    const rig = await loggedIn();
    const other = await startIdentityProvider();
    onTestFinished(() => other.close());
    guard.setMetadata({ authorization_servers: [other.issuer] });
    guard.revoke();
    expect(await rig.ask()).toBe(204);
    expect(other.requests).toEqual([]);
  });

  it('[CONNECT-LOGIN-ONCE] nobody comes: the deadline ends it, it is told what to do, and nobody is asked a second time', async () => {
    const rig = await makeRig({ withinMs: 300 });
    expect(await rig.ask()).toBe(401);
    expect(rig.credentials.problem).toBe(
      `nobody has logged in within 0.3 s; log in by throughline connect ${guard.url} --login now`,
    );
    expect(await rig.ask()).toBe(401);
    expect(rig.shown).toHaveLength(1);
    // Somebody does it elsewhere.
    await loggedIn();
    expect(await rig.ask()).toBe(204);
    expect(rig.credentials.problem).toBeNull();
  });

  it('[CONNECT-LOGIN-ONCE] nobody is asked with --login never, nor before the client has spoken', async () => {
    const never = await makeRig({ mayAsk: false });
    expect(await never.ask()).toBe(401);
    expect(never.credentials.problem).toContain('the server asks for a login; log in by');
    const quiet = await makeRig();
    expect(await quiet.ask('renewQuietly')).toBe(401);
    expect([never.shown, quiet.shown]).toEqual([[], []]);
  });

  it('[CONNECT-LOGIN-STATE] an answer to another login is not taken; the right one still is', async () => {
    const rig = await makeRig();
    const asked = rig.ask();
    const back = await provider.authorize(await rig.page(), 'alice');
    const state = back.searchParams.get('state')!;
    for (const wrong of ['', 'other', state.slice(1)]) {
      back.searchParams.set('state', wrong);
      expect((await fetch(back)).status).toBe(400);
    }
    expect((await fetch(new URL('/', back))).status).toBe(404);
    back.searchParams.set('state', state);
    expect((await fetch(back)).status).toBe(200);
    expect(await asked).toBe(204);
    expect(rig.told.join()).toContain('an answer to another login came, and was not taken');
  });

  it('[CONNECT-LOGIN-STATE] an answer of another issuer than asked ends the login', async () => {
    const rig = await makeRig();
    const asked = rig.ask();
    const back = await provider.authorize(await rig.page(), 'alice');
    back.searchParams.set('iss', 'https://evil.example');
    await fetch(back);
    expect(await asked).toBe(401);
    expect(rig.credentials.problem).toContain('the answer is of another authorization server than asked');
    expect(() => statSync(file())).toThrow('ENOENT');
  });

  it('[CONNECT-LOGIN-FAILS] a person who says no ends it, with what the authorization server said', async () => {
    const rig = await makeRig();
    const asked = rig.ask();
    const page = await rig.page();
    const back = new URL(page.searchParams.get('redirect_uri')!);
    back.search = new URLSearchParams({ state: page.searchParams.get('state')!, error: 'access_denied' }).toString();
    await fetch(back);
    expect(await asked).toBe(401);
    expect(rig.credentials.problem).toContain('refuses the login: access_denied');
  });

  it('[CONNECT-LOGIN-FAILS] a server that names no authorization server is told as before: credentials have to be given', async () => {
    guard.setMetadata(404);
    const rig = await makeRig();
    expect(await rig.ask()).toBe(401);
    expect(rig.told).toEqual(['the server refuses the credentials; give them by --token-file or --header']);
    expect(rig.credentials.problem).toBeNull();
  });

  it('[CONNECT-LOGIN-FAILS] metadata that cannot be had now is trouble that passes, not another way in', async () => {
    guard.setMetadata(503);
    const rig = await makeRig();
    await expect(rig.ask()).rejects.toMatchObject({ name: 'LoginError', code: 'UNAVAILABLE' });
    guard.setMetadata({});
    const asked = rig.ask();
    await logIn(rig);
    expect(await asked).toBe(204);
  });

  it('[CONNECT-LOGIN-FAILS] metadata of another resource, or of another issuer, is refused', async () => {
    guard.setMetadata({ resource: 'https://elsewhere.example/mcp' });
    const foreign = await makeRig();
    expect(await foreign.ask()).toBe(401);
    expect(foreign.credentials.problem).toContain('does not match');
    guard.setMetadata({ authorization_servers: [provider.issuer.replace('127.0.0.1', 'localhost')] });
    const mismatched = await makeRig();
    expect(await mismatched.ask()).toBe(401);
    expect(mismatched.credentials.problem).toContain('the answer is of another authorization server than asked');
    expect([foreign.shown, mismatched.shown]).toEqual([[], []]);
  });

  it('[CONNECT-LOGIN-SAFE] an authorization server without TLS is not asked, nor this machine on behalf of one elsewhere', async () => {
    guard.setMetadata({ authorization_servers: ['http://elsewhere.example/'] });
    const rig = await makeRig();
    expect(await rig.ask()).toBe(401);
    expect(rig.credentials.problem).toContain('has no TLS or no business here');
  });

  it('[CONNECT-LOGIN] an address that a person has copied from the browser is taken as well', async () => {
    let type: (line: string) => void = () => undefined;
    const typed = new Promise<string>((resolve) => {
      type = resolve;
    });
    async function* lines(): AsyncGenerator<string> {
      yield 'what is this?';
      yield await typed;
    }
    const rig = await makeRig({}, lines());
    const asked = rig.ask();
    type(`  ${(await provider.authorize(await rig.page(), 'alice')).href}\n`);
    expect(await asked).toBe(204);
  });

  it('[CONNECT-LOGIN] a client that is registered already is used, and its port', async () => {
    const answer = await fetch(`${provider.issuer}/reg`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: ['http://127.0.0.1/callback'],
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_basic',
      }),
    });
    const { client_id: id, client_secret: secret } = (await answer.json()) as Record<string, string>;
    const registrations = provider.requests.filter((line) => line === 'POST /reg').length;
    await loggedIn({ client: { id: id!, secret: secret! } });
    expect(kept().client).toMatchObject({ client_id: id });
    guard.revoke();
    expect(await (await makeRig({ client: { id: id!, secret: secret! } })).ask()).toBe(204);
    expect(provider.requests.filter((line) => line === 'POST /reg').length).toBe(registrations);
  });

  it('[CONNECT-LOGIN] the port of the registration is used again; if another process has it, a client is registered anew', async () => {
    const first = await loggedIn();
    const port = kept().redirectPort!;
    const again = await makeRig();
    const asked = again.credentials.logInAnew(
      new Response(null, { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } }),
    );
    expect((await again.page()).searchParams.get('redirect_uri')).toBe(`http://127.0.0.1:${port}/callback`);
    await logIn(again, 1, 'bob');
    expect(await asked).toBe(true);
    expect(first.credentials.headers()['Authorization']).not.toBe(again.credentials.headers()['Authorization']);
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void taken.close());
    const third = await makeRig();
    const last = third.credentials.logInAnew(
      new Response(null, { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } }),
    );
    await logIn(third);
    expect(await last).toBe(true);
    expect(kept().redirectPort).not.toBe(port);
  });

  it('[CONNECT-LOGIN-SCOPE] a scope that is missing is asked for, with those that there are; one that is there is not', async () => {
    const rig = await loggedIn();
    const forbidden = (scope: string): Response =>
      new Response(null, {
        status: 403,
        headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
      });
    const sent = new Headers(rig.credentials.headers());
    expect(await rig.credentials.onUnauthorized(forbidden('mcp'), sent)).toBe(false);
    expect(rig.shown).toHaveLength(1);
    const next = await makeRig();
    void next.credentials
      .onUnauthorized(forbidden('files'), new Headers(next.credentials.headers()))
      .catch(() => undefined);
    expect((await next.page()).searchParams.get('scope')?.split(' ')).toEqual(expect.arrayContaining(['mcp', 'files']));
  });

  it('[CONNECT-LOGIN-SAFE] nothing of a token is ever told, and a process that stops lets go of the login', async () => {
    const rig = await loggedIn();
    const { tokens } = kept();
    const stopped = await makeRig();
    const asked = stopped.credentials.logInAnew(
      new Response(null, { status: 401, headers: { 'WWW-Authenticate': 'Bearer' } }),
    );
    const back = new URL((await stopped.page()).searchParams.get('redirect_uri')!);
    stopped.stop.abort();
    await expect(asked).rejects.toMatchObject({ code: 'STOPPED' });
    await expect(fetch(back)).rejects.toThrow('fetch failed');
    expect(readdirSync(folder)).toEqual([path.basename(file())]);
    const said = [...rig.told, ...stopped.told, ...rig.shown, ...stopped.shown].join('\n');
    for (const secret of [tokens!.access_token, tokens!.refresh_token!]) expect(said).not.toContain(secret);
  });
});
