/**
 * One login by a person with a browser: the steps are those of the SDK, between them a page on this machine waits for the
 * answer. SPEC: CONNECT-LOGIN, CONNECT-LOGIN-STATE, CONNECT-LOGIN-FAILS, CONNECT-LOGIN-SAFE.
 */
import { randomBytes } from 'node:crypto';
import { auth, discoverOAuthServerInfo, isHttpsUrl } from '@modelcontextprotocol/client';
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
} from '@modelcontextprotocol/client';
import { errorCode } from '../../file-problem.ts';
import { isSafe } from './careful-fetch.ts';
import type { CarefulFetch, CarefulOptions } from './careful-fetch.ts';
import { LoginError } from './login-error.ts';
import { readTokens } from './login-record.ts';
import type { LoginRecord } from './login-record.ts';
import { listenForRedirect } from './redirect-listener.ts';
import type { GivenAnswer, RedirectListener } from './redirect-listener.ts';
import { troubleOf } from './trouble-of.ts';

/** What the server has said of what it wants. */
export interface Challenge {
  readonly resourceMetadataUrl: URL | undefined;
  readonly scope: string | undefined;
}

/** A client that the person has registered at the authorization server. */
export interface GivenClient {
  /** An id, or the https URL of a client metadata document. */
  readonly id: string;
  readonly secret: string | null;
}

export interface BrowserLogin extends CarefulOptions {
  readonly challenge: Challenge;
  /** What is known from before. */
  readonly kept: LoginRecord | null;
  readonly client: GivenClient | null;
  /** `null`: that of the registration, or any. */
  readonly redirectPort: number | null;
  readonly fetch: CarefulFetch;
  readonly withinMs: number;
  /** Shows a person where to log in. */
  show(url: URL): void;
  /** Addresses that a person has copied from the browser; none where nobody types. */
  readonly pasted: AsyncIterable<string> | null;
  tell(text: string): void;
}

/** Rejects with a {@link LoginError}. */
export async function logInByBrowser(login: BrowserLogin): Promise<LoginRecord> {
  try {
    return await logIn(login);
  } catch (error) {
    throw login.signal.aborted
      ? new LoginError('STOPPED', 'nobody waits for the login any more', error)
      : troubleOf(error);
  }
}

async function logIn(login: BrowserLogin): Promise<LoginRecord> {
  const { serverUrl, challenge, fetch: fetchFn } = login;
  const { resourceMetadataUrl } = challenge;
  const info = await discoverOAuthServerInfo(serverUrl, {
    fetchFn,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
  });
  const issuer = info.authorizationServerMetadata?.issuer;
  if (issuer === undefined) throw new LoginError('NOT_OFFERED', 'the server names no authorization server');
  const registered = login.kept?.issuer === issuer && login.client === null ? login.kept : null;
  const state = randomBytes(24).toString('base64url');
  await using listener = await listen(login, registered?.redirectPort ?? null, state);
  const isRegistered = registered?.client != null && registered.redirectPort === listener.port;
  const flow = makeFlow(login, listener.url, state, info, isRegistered ? registered.client : null);
  const options = {
    serverUrl,
    fetchFn,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...(challenge.scope === undefined ? {} : { scope: challenge.scope }),
  };
  await auth(flow.provider, { ...options, forceReauthorization: true });
  const { page } = flow;
  if (page === null) throw new LoginError('FAILED', 'the authorization server has no page for a login');
  if (!isSafe(page, login)) throw new LoginError('FAILED', `the page for the login, at ${page.origin}, has no TLS`);
  login.show(page);
  const answer = await waitForAnswer(login, listener);
  if (answer.kind === 'refused')
    throw new LoginError('REFUSED', `the authorization server refuses the login: ${answer.why}`);
  const { code: authorizationCode, iss } = answer;
  await auth(flow.provider, { ...options, authorizationCode, ...(iss === undefined ? {} : { iss }) });
  return {
    v: 1,
    issuer,
    authorizationServerUrl: info.authorizationServerUrl,
    resource: info.resourceMetadata?.resource ?? null,
    client: flow.client,
    redirectPort: listener.port,
    tokens: readTokens(flow.tokens),
  };
}

async function listen(login: BrowserLogin, registeredPort: number | null, state: string): Promise<RedirectListener> {
  const onOther = (): void => {
    login.tell('an answer to another login came, and was not taken; use the newest address');
  };
  const port = login.redirectPort ?? registeredPort ?? 0;
  try {
    return await listenForRedirect(port, state, onOther);
  } catch (error) {
    if (login.redirectPort !== null || errorCode(error) !== 'EADDRINUSE')
      throw new LoginError(
        'FAILED',
        `nobody can listen on 127.0.0.1:${port} for the answer; choose another --redirect-port`,
        error,
      );
    return await listenForRedirect(0, state, onOther);
  }
}

interface Flow {
  readonly provider: OAuthClientProvider;
  readonly client: StoredOAuthClientInformation | null;
  readonly page: URL | null;
  readonly tokens: unknown;
}

/** What the SDK asks for and gives while it goes through the steps. Nothing of it outlives them. */
function makeFlow(
  { client: given, kept }: BrowserLogin,
  redirectUrl: string,
  state: string,
  info: OAuthDiscoveryState,
  registered: StoredOAuthClientInformation | null,
): Flow {
  const isDocument = given !== null && isHttpsUrl(given.id);
  let client = registered;
  if (given !== null && !isDocument)
    client = {
      client_id: given.id,
      ...(given.secret === null ? {} : { client_secret: given.secret }),
      // A secret that was given to one authorization server is not given to another.
      ...(kept === null ? {} : { issuer: kept.issuer }),
    };
  let discovered = info;
  let verifier = '';
  let page: URL | null = null;
  let tokens: unknown = null;
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: 'throughline connect',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    ...(isDocument ? { clientMetadataUrl: given.id } : {}),
    state: () => state,
    clientInformation: () => client ?? undefined,
    tokens: () => undefined,
    saveTokens(saved) {
      tokens = saved;
    },
    redirectToAuthorization(url) {
      page = url;
    },
    saveCodeVerifier(saved) {
      verifier = saved;
    },
    codeVerifier: () => verifier,
    discoveryState: () => discovered,
    saveDiscoveryState(saved) {
      discovered = saved;
    },
  };
  if (given === null || isDocument)
    provider.saveClientInformation = (saved) => {
      client = saved;
    };
  return {
    provider,
    get client() {
      return client;
    },
    get page() {
      return page;
    },
    get tokens() {
      return tokens;
    },
  };
}

async function waitForAnswer(
  { withinMs, signal, pasted }: BrowserLogin,
  listener: RedirectListener,
): Promise<GivenAnswer> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new LoginError('NOBODY_CAME', `nobody has logged in within ${withinMs / 1000} s`));
  }, withinMs);
  const stop = (): void => {
    reject(new LoginError('STOPPED', 'nobody waits for the login any more'));
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  if (pasted !== null) void takePasted(pasted, listener);
  try {
    return await Promise.race([listener.answer, over]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

async function takePasted(pasted: AsyncIterable<string>, listener: RedirectListener): Promise<void> {
  try {
    for await (const line of pasted) {
      const url = URL.parse(line.trim());
      if (url !== null && listener.take(url.searchParams)) return;
    }
  } catch {
    // The browser may still answer by itself.
  }
}
