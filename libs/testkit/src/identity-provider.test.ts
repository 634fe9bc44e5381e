/** The fixture does what identity providers of MCP servers do: what other tests rely on. */
import { createHash } from 'node:crypto';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startIdentityProvider } from './identity-provider.ts';
import type { IdentityProvider } from './identity-provider.ts';

const RESOURCE = 'http://127.0.0.1:8080/mcp';
const REDIRECT = 'http://127.0.0.1:9/callback';
const VERIFIER = 'a-verifier-of-at-least-forty-three-characters-0123';

describe('the identity provider of tests', () => {
  let provider: IdentityProvider;
  let clientId: string;

  beforeAll(async () => {
    provider = await startIdentityProvider({ accessTokenSeconds: 60 });
    const registered = await post('/reg', {
      client_name: 'a test',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
    clientId = registered['client_id'] as string;
  }, 60_000);
  afterAll(() => provider.close());

  async function post(path: string, body: Record<string, unknown> | URLSearchParams): Promise<Record<string, unknown>> {
    const isForm = body instanceof URLSearchParams;
    const response = await fetch(`${provider.issuer}${path}`, {
      method: 'POST',
      ...(isForm ? { body } : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    });
    return (await response.json()) as Record<string, unknown>;
  }

  async function logIn(user: string, more: Record<string, string> = {}): Promise<Record<string, unknown>> {
    const url = new URL('/auth', provider.issuer);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: REDIRECT,
      scope: 'mcp',
      state: 'the state',
      resource: RESOURCE,
      code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
      code_challenge_method: 'S256',
      ...more,
    }).toString();
    const back = await provider.authorize(url, user);
    expect(back.href.split('?')[0]).toBe(REDIRECT);
    expect(back.searchParams.get('state')).toBe('the state');
    return post(
      '/token',
      new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: clientId,
        redirect_uri: REDIRECT,
        code: back.searchParams.get('code') ?? '',
        code_verifier: VERIFIER,
        resource: RESOURCE,
      }),
    );
  }

  async function claimsOf(token: unknown): Promise<Record<string, unknown>> {
    const keys = createRemoteJWKSet(new URL(provider.jwksUrl));
    const { payload } = await jwtVerify(token as string, keys, { issuer: provider.issuer, audience: RESOURCE });
    return payload;
  }

  it('logs a named user in and gives a JWT for the resource, which a refresh renews for the same user', async () => {
    const tokens = await logIn('alice');
    expect(await claimsOf(tokens['access_token'])).toMatchObject({ sub: 'alice', scope: 'mcp' });
    const again = await post(
      '/token',
      new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: tokens['refresh_token'] as string,
        resource: RESOURCE,
      }),
    );
    expect(again['access_token']).not.toBe(tokens['access_token']);
    expect(await claimsOf(again['access_token'])).toMatchObject({ sub: 'alice', scope: 'mcp' });
  }, 60_000);

  it('says yes to a client that insists on being allowed, as those do that ask for offline access', async () => {
    const tokens = await logIn('carol', { scope: 'mcp offline_access', prompt: 'consent' });
    expect(await claimsOf(tokens['access_token'])).toMatchObject({ sub: 'carol', scope: 'mcp' });
    expect(tokens['refresh_token']).toBeTypeOf('string');
  }, 60_000);

  it('is found by both discovery documents', async () => {
    for (const path of ['oauth-authorization-server', 'openid-configuration']) {
      const response = await fetch(`${provider.issuer}/.well-known/${path}`);
      expect(await response.json()).toMatchObject({
        issuer: provider.issuer,
        jwks_uri: provider.jwksUrl,
        registration_endpoint: `${provider.issuer}/reg`,
        code_challenge_methods_supported: ['S256'],
      });
    }
  }, 60_000);

  it('makes tokens that live as long as it was told', async () => {
    provider.setAccessTokenSeconds(5);
    const { access_token: token, expires_in: seconds } = await logIn('bob');
    expect(seconds).toBe(5);
    const { sub, exp, iat } = await claimsOf(token);
    expect([sub, Number(exp) - Number(iat)]).toEqual(['bob', 5]);
  }, 60_000);
});
