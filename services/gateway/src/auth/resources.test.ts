import { describe, expect, it } from 'vitest';
import { ISSUER } from '../testing/token-maker.ts';
import { audienceOf, metadataOf, resourcesOf } from './resources.ts';

const ONE = { publicUrl: 'https://mcp.example.com', servers: ['demo'] };
const TWO = { publicUrl: 'https://example.com/tools/', servers: ['files', 'shop'] };

describe('protected resources', () => {
  it('[AUTH-METADATA] are the gateway and each endpoint, named under the public URL', () => {
    expect(resourcesOf(ONE)).toEqual([
      {
        path: '',
        identifier: 'https://mcp.example.com',
        metadataUrl: 'https://mcp.example.com/.well-known/oauth-protected-resource',
      },
      {
        path: '/mcp',
        identifier: 'https://mcp.example.com/mcp',
        metadataUrl: 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp',
      },
      {
        path: '/mcp/demo',
        identifier: 'https://mcp.example.com/mcp/demo',
        metadataUrl: 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp/demo',
      },
    ]);
    expect(resourcesOf(TWO).map(({ identifier }) => identifier)).toEqual([
      'https://example.com/tools',
      'https://example.com/tools/mcp/files',
      'https://example.com/tools/mcp/shop',
    ]);
    expect(resourcesOf({ ...ONE, publicUrl: null })).toEqual([]);
  });

  it('[AUTH-METADATA] a public URL cannot end the quotes that it stands in', () => {
    const [whole] = resourcesOf({ ...ONE, publicUrl: 'https://MCP.example.com/a"b' });
    expect(whole?.metadataUrl).toBe('https://mcp.example.com/a%22b/.well-known/oauth-protected-resource');
  });

  it('[AUTH-AUDIENCE] a token is for one server, by either of its paths, or for the gateway', () => {
    expect(audienceOf(ONE, 'demo')).toEqual([
      'https://mcp.example.com',
      'https://mcp.example.com/mcp',
      'https://mcp.example.com/mcp/demo',
    ]);
    expect(audienceOf(TWO, 'files')).toEqual(['https://example.com/tools', 'https://example.com/tools/mcp/files']);
  });

  it('[AUTH-METADATA] the document names the resource, its authorization servers and scopes', () => {
    const [, endpoint] = resourcesOf(ONE);
    if (endpoint === undefined) throw new TypeError('no endpoint');
    const issuers = [ISSUER, 'https://other.example'].map((issuer) => ({
      issuer,
      audience: null,
      algorithms: [],
      keys: [],
    }));
    expect(metadataOf(endpoint, { issuers, requiredScopes: ['mcp'] })).toEqual({
      resource: 'https://mcp.example.com/mcp',
      authorization_servers: ['https://id.example.com', 'https://other.example'],
      bearer_methods_supported: ['header'],
      scopes_supported: ['mcp'],
    });
    expect(metadataOf(endpoint, { issuers, requiredScopes: [] })).not.toHaveProperty('scopes_supported');
  });
});
