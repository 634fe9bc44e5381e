/** A server that lets in whoever has a token of the identity provider for it, and hands all else to another server. */
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, jwtVerify } from 'jose';

export interface Guard extends AsyncDisposable {
  /** The endpoint that is guarded. */
  readonly url: string;
  /** Bearer tokens that were let in, and those that were not; `null`: none came. */
  readonly admitted: readonly string[];
  readonly refused: readonly (string | null)[];
  /** Cursors of the requests that were let in. */
  readonly cursors: readonly string[];
  /** Tokens made so far are refused from now on, and open answers are cut. */
  revoke(): void;
  /** Replaces what is said of the authorization server; a status instead of a document. */
  setMetadata(metadata: Readonly<Record<string, unknown>> | number): void;
  /** What stands in `WWW-Authenticate` besides. */
  setChallenge(challenge: string): void;
}

export interface GuardOptions {
  readonly issuer: string;
  readonly jwksUrl: string;
  /** `null`: whoever is let in is told 204. */
  readonly upstream: string | null;
  readonly scopes?: readonly string[];
}

const METADATA = '/.well-known/oauth-protected-resource/mcp';

export async function startGuard({ issuer, jwksUrl, upstream, scopes = ['mcp'] }: GuardOptions): Promise<Guard> {
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  const admitted: string[] = [];
  const refused: (string | null)[] = [];
  const cursors: string[] = [];
  const revoked = new Set<string>();
  const open = new Set<ServerResponse>();
  let metadata: Readonly<Record<string, unknown>> | number = {};
  let more = '';
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${origin}/mcp`;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === METADATA) {
      if (typeof metadata === 'number') {
        response.writeHead(metadata).end();
        return;
      }
      const said = { resource: url, authorization_servers: [issuer], scopes_supported: scopes, ...metadata };
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
      return;
    }
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? null;
    if (token === null || revoked.has(token) || !(await isValid(token))) {
      refused.push(token);
      const challenge = `Bearer resource_metadata="${origin}${METADATA}"${more}`;
      response.writeHead(401, { 'WWW-Authenticate': challenge }).end();
      return;
    }
    admitted.push(token);
    const cursor = request.headers['last-event-id'];
    if (typeof cursor === 'string') cursors.push(cursor);
    if (upstream === null) response.writeHead(204).end();
    else pass(upstream, request, response);
  }

  async function isValid(token: string): Promise<boolean> {
    try {
      await jwtVerify(token, keys, { issuer, audience: url });
      return true;
    } catch {
      return false;
    }
  }

  function pass(target: string, request: IncomingMessage, response: ServerResponse): void {
    open.add(response);
    response.once('close', () => open.delete(response));
    const { authorization: _authorization, host: _host, ...headers } = request.headers;
    const passed = ask(target, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.once('error', () => response.destroy());
    });
    passed.once('error', () => response.destroy());
    response.once('close', () => passed.destroy());
    request.pipe(passed);
  }

  return {
    url,
    admitted,
    refused,
    cursors,
    revoke() {
      for (const token of admitted) revoked.add(token);
      for (const response of open) response.destroy();
    },
    setMetadata(said) {
      metadata = said;
    },
    setChallenge(challenge) {
      more = challenge;
    },
    async [Symbol.asyncDispose]() {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      server.close(() => resolve(undefined));
      server.closeAllConnections();
      await promise;
    },
  };
}
