import { describe, expect, it } from 'vitest';
import { queryRefusal, tokenRefusal } from './refuse-token.ts';
import type { TokenRefusal } from './judge-token.ts';

const HERE = {
  metadataUrl: 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp',
  requiredScopes: ['mcp', 'email'],
};
const PLAIN = { metadataUrl: null, requiredScopes: [] };
const WHERE = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp email"';

describe('a refused token', () => {
  it('[AUTH-CHALLENGE] without a token the client is told where to get one, and no error', () => {
    expect(tokenRefusal('no-token', HERE).refusal).toMatchObject({
      code: 'UNAUTHORIZED',
      data: { reason: 'no-token' },
      headers: { 'WWW-Authenticate': `Bearer ${WHERE}` },
    });
    expect(tokenRefusal('no-token', PLAIN).refusal.headers).toEqual({ 'WWW-Authenticate': 'Bearer' });
  });

  it('[AUTH-CHALLENGE] a poor token is 403 with the scopes that are needed', () => {
    expect(tokenRefusal('scope', HERE).refusal).toMatchObject({
      code: 'INSUFFICIENT_SCOPE',
      headers: {
        'WWW-Authenticate': `Bearer error="insufficient_scope", error_description="The bearer token lacks a scope", ${WHERE}`,
      },
    });
  });

  it.each<TokenRefusal>([
    'malformed',
    'unknown-token',
    'unknown-issuer',
    'algorithm',
    'unknown-key',
    'signature',
    'type',
    'sender-constrained',
    'claims',
    'expired',
    'not-yet-valid',
    'audience',
  ])('[AUTH-CHALLENGE] %s is 401 and invalid_token, with its reason', (reason) => {
    const { code, data, headers } = tokenRefusal(reason, HERE).refusal;
    expect({ code, data }).toEqual({ code: 'UNAUTHORIZED', data: { reason } });
    expect(headers?.['WWW-Authenticate']).toMatch(
      /^Bearer error="invalid_token", error_description="[ -!#-[\]-~]{20,}", resource/,
    );
    expect(headers?.['WWW-Authenticate']?.endsWith(WHERE)).toBe(true);
  });

  it('[AUTH-KEYS-DOWN] keys that cannot be had are 503 without a challenge: the token may be good', () => {
    const { code, headers } = tokenRefusal('keys-unavailable', HERE).refusal;
    expect({ code, headers }).toEqual({ code: 'AUTH_UNAVAILABLE', headers: undefined });
  });

  it('[AUTH-QUERY] a token in the URL is 400 and invalid_request', () => {
    const { code, headers } = queryRefusal(HERE).refusal;
    expect(code).toBe('INVALID_REQUEST');
    expect(headers?.['WWW-Authenticate']).toMatch(/^Bearer error="invalid_request", /);
  });
});
