/** An HTTP server whose answers a test writes by hand, to meet upstreams that no SDK makes. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedRequest {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  /** The JSON of a POST. */
  readonly message: Record<string, unknown>;
  readonly atMs: number;
}

export type Answer = (request: ScriptedRequest, response: ServerResponse) => void;

export interface ScriptedServer {
  readonly url: string;
  readonly requests: readonly ScriptedRequest[];
  close(): Promise<void>;
}

/** `initialize` and notifications are answered as usual unless `answer` has a `writableEnded` response before that. */
export async function serveScripted(answer: Answer): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = [];
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const seen: ScriptedRequest = {
        method: request.method ?? '',
        headers: request.headers,
        message: body === '' ? {} : (JSON.parse(body) as Record<string, unknown>),
        atMs: performance.now(),
      };
      requests.push(seen);
      answer(seen, response);
    });
  });
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${String((http.address() as AddressInfo).port)}/mcp`,
    requests,
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

export function sendJson(response: ServerResponse, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Begins an SSE answer with these events, each `id|data` (or only data, or `id|` for a priming event). */
export function sendSse(response: ServerResponse, events: readonly string[]): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  for (const event of events) {
    const bar = event.indexOf('|');
    const id = bar === -1 ? '' : `id: ${event.slice(0, bar)}\n`;
    response.write(`${id}data: ${event.slice(bar + 1)}\n\n`);
  }
}

/** Answers the handshake; true if it did. Session id `up-1`, no standalone stream. */
export function answerHandshake({ method, message }: ScriptedRequest, response: ServerResponse): boolean {
  if (method === 'POST' && message['method'] === 'initialize') {
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'scripted', version: '1' } };
    sendJson(response, { jsonrpc: '2.0', id: message['id'], result }, { 'mcp-session-id': 'up-1' });
    return true;
  }
  if (method === 'POST' && (message['method'] === undefined || !('id' in message))) {
    response.writeHead(202).end();
    return true;
  }
  if (method === 'DELETE') {
    response.writeHead(200).end();
    return true;
  }
  return false;
}
