/**
 * The metadata of the protected resources (RFC 9728): by them a client finds where to get a token. Public, and for every
 * web page, since they say nothing that a challenge does not say. SPEC: AUTH-METADATA.
 */
import type { Express, NextFunction, Request, Response } from 'express';
import { checkHost } from '../admission.ts';
import { refuse } from '../answer-error.ts';
import { withoutSlash } from '../auth/judge-token.ts';
import { METADATA_PATH, metadataOf, resourcesOf } from '../auth/resources.ts';
import type { GatewayConfig } from '../config.ts';

const METHODS = 'GET, OPTIONS';
/** Clients of the official SDKs send it with every request. */
const ALLOWED_HEADERS = 'MCP-Protocol-Version, Accept';
const MAX_AGE = 'public, max-age=300';

/** Serves nothing where no authorization server is configured. */
export function serveMetadata(app: Express, config: GatewayConfig): void {
  if (config.issuers.length === 0) return;
  const documents = documentsOf(config);
  app.use((request: Request, response: Response, next: NextFunction): void => {
    const body = documents.get(withoutSlash(request.path));
    if (body === undefined) {
      next();
      return;
    }
    checkHost(config, request.headers.host);
    response.setHeader('Access-Control-Allow-Origin', '*');
    if (request.method === 'OPTIONS') answerPreflight(response, METHODS, ALLOWED_HEADERS);
    else if (request.method !== 'GET' && request.method !== 'HEAD')
      refuse('METHOD_NOT_ALLOWED', `${request.method} is not served here`, { headers: { Allow: METHODS } });
    else
      response
        .writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': MAX_AGE })
        .end(request.method === 'GET' ? body : undefined);
  });
}

/** By path: behind the public URL, where the challenge names it and a proxy takes its path away, and before its path (RFC 9728 section 3.1). */
function documentsOf(config: GatewayConfig): ReadonlyMap<string, string> {
  const prefix = withoutSlash(new URL(config.publicUrl ?? 'http://localhost').pathname);
  return new Map(
    resourcesOf(config).flatMap((resource) => {
      const body = JSON.stringify(metadataOf(resource, config));
      return ['', prefix].map((inserted) => [`${METADATA_PATH}${inserted}${resource.path}`, body] as const);
    }),
  );
}

export function answerPreflight(response: Response, methods: string, headers: string): void {
  response.setHeader('Access-Control-Allow-Methods', methods);
  response.setHeader('Access-Control-Allow-Headers', headers);
  response.setHeader('Access-Control-Max-Age', '600');
  response.setHeader('Allow', methods);
  response.writeHead(204).end();
}
