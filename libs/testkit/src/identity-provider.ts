/**
 * A real identity provider (`oidc-provider`) on loopback: discovery, dynamic registration, PKCE, resource indicators
 * (RFC 8707) that become the audience of JWT access tokens, refresh tokens. Whoever knows a name is logged in.
 */
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import type { Configuration } from 'oidc-provider';
import { LOOPBACK } from './free-port.ts';

export interface IdentityProviderOptions {
  /** Port on 127.0.0.1; default: any free one. */
  readonly port?: number;
  /** Seconds that an access token lives; default 3600. */
  readonly accessTokenSeconds?: number;
  /** Scopes that a resource has, besides `openid` and `offline_access`; default `mcp` alone. */
  readonly scopes?: readonly string[];
}

export interface IdentityProvider {
  /** `http://127.0.0.1:<port>`: the `iss` of its tokens. Its metadata are at the two well-known paths. */
  readonly issuer: string;
  readonly jwksUrl: string;
  /** Requests so far, as `<METHOD> <path>`. */
  readonly requests: readonly string[];
  /**
   * What a browser does in which `user` logs in and consents: follows an authorization URL through the redirects.
   * Resolves with the URL that the browser would visit last, the client's redirect URI with `code` and `state`, without
   * visiting it.
   */
  authorize(authorizationUrl: string | URL, user: string): Promise<URL>;
  /** Tokens made from now on live so long. */
  setAccessTokenSeconds(seconds: number): void;
  /** Idempotent. */
  close(): Promise<void>;
}

const MAX_REDIRECTS = 10;
const INTERACTION = '/interaction/';
/** The request parameter by which {@link IdentityProvider.authorize} says who logs in. */
const USER_PARAMETER = 'login_hint';
const NOBODY = 'user';

export async function startIdentityProvider(options: IdentityProviderOptions = {}): Promise<IdentityProvider> {
  const { port = 0, scopes = ['mcp'] } = options;
  let { accessTokenSeconds = 3600 } = options;
  const requests: string[] = [];
  // Its issuer has its port, so that it listens before there is a provider.
  let answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
    response.writeHead(503).end();
  };
  const server = createServer((request, response) => {
    requests.push(`${request.method ?? ''} ${(request.url ?? '').split('?')[0] ?? ''}`);
    answer(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, LOOPBACK, resolve);
  });
  const issuer = `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(
    issuer,
    configure(scopes, () => accessTokenSeconds),
  );
  const protocol = provider.callback();
  answer = (request, response) => {
    if (request.url?.startsWith(INTERACTION) === true) {
      interact(provider, request, response).catch(() => {
        response.writeHead(400).end('the login has ended');
      });
    } else void protocol(request, response);
  };
  let closing: Promise<void> | null = null;
  return {
    issuer,
    jwksUrl: `${issuer}/jwks`,
    requests,
    authorize: (authorizationUrl, user) => followRedirects(issuer, new URL(authorizationUrl), user),
    setAccessTokenSeconds(seconds) {
      accessTokenSeconds = seconds;
    },
    close() {
      closing ??= new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
      return closing;
    },
  };
}

function configure(scopes: readonly string[], accessTokenSeconds: () => number): Configuration {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: 'jwk' }), kid: 'first', use: 'sig', alg: 'RS256' };
  return {
    jwks: { keys: [key] },
    cookies: { keys: ['a key of a test'] },
    scopes: ['openid', 'offline_access', ...scopes],
    findAccount: (_context, subject) => ({ accountId: subject, claims: () => ({ sub: subject }) }),
    interactions: { url: (_context, { uid }) => `${INTERACTION}${uid}` },
    loadExistingGrant: grantEverything,
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    // Official clients refresh from several requests at once, and one that was used twice would end the whole grant.
    rotateRefreshToken: false,
    clientBasedCORS: () => true,
    pkce: { required: () => true },
    ttl: {
      AccessToken: accessTokenSeconds,
      AuthorizationCode: 60,
      RefreshToken: 3600,
      Session: 3600,
      Grant: 3600,
      Interaction: 600,
      IdToken: 600,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // Without a resource a token would say nothing of whom it is for.
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenTTL: accessTokenSeconds(),
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}

/** Nobody is asked for consent, */
const grantEverything: NonNullable<Configuration['loadExistingGrant']> = ({ oidc }) => {
  const { client, session, params, provider } = oidc;
  return client === undefined || session?.accountId === undefined
    ? undefined
    : grant(provider, client.clientId, session.accountId, params ?? {});
};

/** or says yes at once if a client insists on asking (`prompt=consent`). */
async function interact(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params, prompt, session } = await provider.interactionDetails(request, response);
  const hint = params[USER_PARAMETER];
  const user = typeof hint === 'string' ? hint : NOBODY;
  const result =
    prompt.name === 'consent' && session !== undefined
      ? { consent: { grantId: (await grant(provider, String(params['client_id']), session.accountId, params)).jti } }
      : { login: { accountId: user } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function grant(
  provider: Provider,
  clientId: string,
  accountId: string,
  params: Readonly<Record<string, unknown>>,
): Promise<InstanceType<Provider['Grant']>> {
  const made = new provider.Grant({ clientId, accountId });
  const scope = typeof params['scope'] === 'string' ? params['scope'] : '';
  made.addOIDCScope(scope);
  const { resource } = params;
  for (const each of Array.isArray(resource) ? resource : [resource])
    if (typeof each === 'string') made.addResourceScope(each, scope);
  await made.save();
  return made;
}

async function followRedirects(issuer: string, start: URL, user: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  url.searchParams.set(USER_PARAMETER, user);
  for (let step = 0; step < MAX_REDIRECTS; step++) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name !== undefined && value !== undefined) cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`the identity provider answered ${response.status}: ${text.slice(0, 500)}`);
    url = new URL(location, url);
    if (url.origin !== issuer) return url;
  }
  throw new Error(`the identity provider redirected ${MAX_REDIRECTS} times`);
}
