/** The Node form of the SDK's transport, which takes `req` and `res`, as a function of `Request`. No port is opened. */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { HandleRequest } from './reinitialize.ts';

export interface NodeTransport {
  handleRequest(req: IncomingMessage, res: ServerResponse): Promise<void>;
}

/** For {@link SessionEvents.reinitialize}: one request with a body, one answer that ends. */
export function nodeHandler(transport: NodeTransport): HandleRequest {
  return async (asked) => {
    const body = await asked.text();
    const [near, far] = duplexPair();
    const server = createServer((req, res) => {
      transport.handleRequest(req, res).catch((error: unknown) => {
        res.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    try {
      server.emit('connection', far);
      const headers = {
        ...Object.fromEntries(asked.headers),
        Host: 'localhost',
        'Content-Length': Buffer.byteLength(body),
      };
      const sent = httpRequest({
        method: asked.method,
        path: new URL(asked.url).pathname,
        headers,
        createConnection: () => near,
      });
      sent.once('response', resolve);
      sent.once('error', reject);
      sent.end(body);
      const answer = await promise;
      const answered = await text(answer);
      const given = new Headers();
      for (const [name, value] of Object.entries(answer.headers)) if (typeof value === 'string') given.set(name, value);
      return new Response(answered === '' ? null : answered, { status: answer.statusCode ?? 500, headers: given });
    } finally {
      near.destroy();
      far.destroy();
    }
  };
}
