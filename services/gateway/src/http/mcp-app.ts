/** The Express shell of the MCP endpoint: paths, body limit, CORS. Everything else is the core's. SPEC: GW-PATH, GW-CORS, GW-LIMIT. */
import express from 'express';
import type { Express, NextFunction, Request, Response } from 'express';
import { HTTP_HEADER } from '@throughline/protocol';
import { isAllowedOrigin } from '../admission.ts';
import { answerRefusal } from '../answer-error.ts';
import type { GatewayConfig } from '../config.ts';
import type { GatewayCore } from '../core.ts';
import { nodeSink } from './node-sink.ts';

const ALLOWED_HEADERS = [
  'Content-Type',
  'Accept',
  'Authorization',
  HTTP_HEADER.sessionId,
  HTTP_HEADER.protocolVersion,
  HTTP_HEADER.lastEventId,
].join(', ');
const EXPOSED_HEADERS = [
  HTTP_HEADER.sessionId,
  HTTP_HEADER.replayEpoch,
  HTTP_HEADER.replayFrom,
  'WWW-Authenticate',
  'Retry-After',
].join(', ');
const METHODS = 'GET, POST, DELETE, OPTIONS';

export function createMcpApp(config: GatewayConfig, core: GatewayCore): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    const origin = request.headers.origin;
    if (origin !== undefined && isAllowedOrigin(config, origin)) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      response.setHeader('Vary', 'Origin');
      response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    }
    if (!core.isReady()) response.setHeader('Connection', 'close');
    next();
  });
  const only = config.servers.length === 1 ? config.servers[0] : undefined;
  const serve = (server: string) => [
    preflight,
    express.raw({ type: () => true, limit: config.maxBodyBytes, inflate: false }),
    async (request: Request, response: Response): Promise<void> => {
      const gone = new AbortController();
      response.on('close', () => {
        gone.abort();
      });
      await core.handle(
        {
          method: request.method,
          server,
          header: (name) => headerValue(request, name),
          body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
          signal: gone.signal,
        },
        nodeSink(response, gone.signal),
      );
    },
  ];
  for (const server of config.servers) app.all(`/mcp/${server}`, ...serve(server));
  if (only !== undefined) app.all('/mcp', ...serve(only));
  app.use((_request, response) => {
    const paths = [...(only === undefined ? [] : ['/mcp']), ...config.servers.map((server) => `/mcp/${server}`)];
    answerRefusal(sinkOf(response), {
      code: 'PATH_NOT_FOUND',
      message: `Nothing is served at this path; MCP is at ${paths.join(', ')}`,
    });
  });
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : 500;
    if (status === 413)
      answerRefusal(sinkOf(response), {
        code: 'BODY_TOO_LARGE',
        message: `The body is larger than ${config.maxBodyBytes} bytes`,
      });
    else if (status === 415)
      answerRefusal(sinkOf(response), { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Compressed bodies are not served' });
    else if (typeof status === 'number' && status >= 400 && status < 500)
      answerRefusal(sinkOf(response), { code: 'INVALID_REQUEST', message: 'The HTTP request could not be read' });
    else answerRefusal(sinkOf(response), { code: 'INTERNAL', message: 'The gateway failed on this request' });
  });
  return app;
}

function preflight(request: Request, response: Response, next: NextFunction): void {
  if (request.method !== 'OPTIONS') {
    next();
    return;
  }
  // Without an allowed Origin no CORS header was set, and the browser refuses by itself.
  response.setHeader('Access-Control-Allow-Methods', METHODS);
  response.setHeader('Access-Control-Allow-Headers', ALLOWED_HEADERS);
  response.setHeader('Access-Control-Max-Age', '600');
  response.writeHead(204).end();
}

function headerValue(request: Request, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function sinkOf(response: Response): ReturnType<typeof nodeSink> {
  return nodeSink(response, new AbortController().signal);
}
