/**
 * The names under which the servers are protected resources (RFC 8707, RFC 9728), made from the configured public URL
 * and from nothing that a request says. SPEC: AUTH-METADATA, AUTH-PUBLIC-URL.
 */
import type { GatewayConfig } from '../config.ts';
import { withoutSlash } from './judge-token.ts';

export const METADATA_PATH = '/.well-known/oauth-protected-resource';

export interface Resource {
  /** Path of the endpoint, or empty for the gateway as a whole. */
  readonly path: string;
  /** What stands in `aud`. */
  readonly identifier: string;
  readonly metadataUrl: string;
}

type ResourceConfig = Pick<GatewayConfig, 'publicUrl' | 'servers'>;

/** Of each server at `/mcp/<name>`, one alone at `/mcp` too: where it is. */
export function endpointsOf(servers: readonly string[]): readonly (readonly [path: string, server: string])[] {
  const [first = ''] = servers;
  return [
    ...(servers.length === 1 ? [['/mcp', first] as const] : []),
    ...servers.map((server) => [`/mcp/${server}`, server] as const),
  ];
}

/** The gateway as a whole first. Empty without a public URL. */
export function resourcesOf({ publicUrl, servers }: ResourceConfig): readonly Resource[] {
  if (publicUrl === null) return [];
  // As a URL is written: it stands in a header inside quotes.
  const base = withoutSlash(new URL(publicUrl).href);
  return ['', ...endpointsOf(servers).map(([path]) => path)].map((path) => ({
    path,
    identifier: `${base}${path}`,
    metadataUrl: `${base}${METADATA_PATH}${path}`,
  }));
}

/** What a token for one server may name: that server, by either of its paths, or the whole gateway. */
export function audienceOf(config: ResourceConfig, server: string): readonly string[] {
  const paths = endpointsOf(config.servers).flatMap(([path, name]) => (name === server ? [path] : []));
  return resourcesOf(config).flatMap(({ path, identifier }) =>
    path === '' || paths.includes(path) ? [identifier] : [],
  );
}

/** The document of RFC 9728. */
export function metadataOf(
  resource: Resource,
  { issuers, requiredScopes }: Pick<GatewayConfig, 'issuers' | 'requiredScopes'>,
): Record<string, unknown> {
  return {
    resource: resource.identifier,
    authorization_servers: issuers.map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    ...(requiredScopes.length === 0 ? {} : { scopes_supported: requiredScopes }),
  };
}
