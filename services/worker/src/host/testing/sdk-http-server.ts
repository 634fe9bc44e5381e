/**
 * Official SDK Streamable HTTP servers on a real socket, for tests: sessions with an in-memory event store, and the means
 * to break connections and to forget sessions.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { EventStore, McpServer as McpServerV2 } from '@modelcontextprotocol/server';

export interface SdkHttpServer {
  readonly url: string;
  /** Method and headers of every request so far. */
  readonly requests: readonly { readonly method: string; readonly headers: Readonly<Record<string, unknown>> }[];
  /** Breaks every open connection. */
  cutConnections(): void;
  /** Forgets every session: they are answered with 404 from now on. */
  forgetSessions(): void;
  openSessions(): number;
  close(): Promise<void>;
}

export interface SdkHttpServerOptions {
  /** Default true. Without, streams have no event ids. */
  readonly hasEventStore?: boolean;
  /** Default false. Answers requests with JSON. */
  readonly isJson?: boolean;
  /** Milliseconds that `retry:` names. Default 20. */
  readonly retryMs?: number;
}

type Message = Parameters<EventStore['storeEvent']>[1];

/** A store of one session: the official example shares one between sessions, which mixes their standalone streams. */
function createEventStore(): EventStore {
  const events: { readonly id: string; readonly stream: string; readonly message: Message }[] = [];
  const find = (id: string): (typeof events)[number] | undefined => events.find((event) => event.id === id);
  return {
    storeEvent(stream, message) {
      const id = `${stream}/${String(events.length)}`;
      events.push({ id, stream, message });
      return Promise.resolve(id);
    },
    getStreamIdForEventId: (id) => Promise.resolve(find(id)?.stream),
    async replayEventsAfter(lastId, { send }) {
      const last = find(lastId);
      if (last === undefined) throw new Error('unknown event id');
      for (const event of events.slice(events.indexOf(last) + 1)) {
        // A priming event is stored as an empty object.
        if (event.stream === last.stream && Object.keys(event.message).length > 0) await send(event.id, event.message);
      }
      return last.stream;
    },
  };
}

interface Endpoint {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

type Registered = (id: string, endpoint: Endpoint) => void;

async function sendWeb(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) {
    response.end();
    return;
  }
  response.flushHeaders();
  const body = Readable.fromWeb(answer.body);
  response.once('close', () => body.destroy());
  body.on('error', () => response.destroy());
  body.pipe(response);
  await new Promise((resolve) => response.once('close', resolve));
}

async function openV2(server: McpServerV2, options: SdkHttpServerOptions, registered: Registered): Promise<Endpoint> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    ...(options.hasEventStore === false ? {} : { eventStore: createEventStore() }),
    ...(options.isJson === true ? { enableJsonResponse: true } : {}),
    retryInterval: options.retryMs ?? 20,
    onsessioninitialized: (id) => {
      registered(id, endpoint);
    },
  });
  const endpoint: Endpoint = {
    async handle(request, response) {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const headers = new Headers();
      for (const [name, value] of Object.entries(request.headers)) {
        if (typeof value === 'string') headers.set(name, value);
      }
      const hasBody = request.method === 'POST';
      const web = new Request(`http://${request.headers.host ?? 'localhost'}${request.url ?? '/'}`, {
        method: request.method ?? 'GET',
        headers,
        ...(hasBody ? { body: Buffer.concat(chunks) } : {}),
      });
      await sendWeb(await transport.handleRequest(web), response);
    },
    close: () => server.close(),
  };
  await server.connect(transport);
  return endpoint;
}

async function openV1(server: McpServerV1, options: SdkHttpServerOptions, registered: Registered): Promise<Endpoint> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    ...(options.hasEventStore === false ? {} : { eventStore: createEventStore() }),
    ...(options.isJson === true ? { enableJsonResponse: true } : {}),
    retryInterval: options.retryMs ?? 20,
    onsessioninitialized: (id) => {
      registered(id, endpoint);
    },
  });
  const endpoint: Endpoint = {
    handle: (request, response) => transport.handleRequest(request, response),
    close: () => server.close(),
  };
  await server.connect(transport);
  return endpoint;
}

/** Serves one new server a session on 127.0.0.1, any port, any path. */
export async function serveOverSdkHttp(
  make: { readonly v1: () => McpServerV1 } | { readonly v2: () => McpServerV2 },
  options: SdkHttpServerOptions = {},
): Promise<SdkHttpServer> {
  const endpoints = new Map<string, Endpoint>();
  const requests: { method: string; headers: Record<string, unknown> }[] = [];
  const register: Registered = (id, endpoint) => {
    endpoints.set(id, endpoint);
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push({ method: request.method ?? '', headers: { ...request.headers } });
    const check = new Request('http://localhost/', {
      headers: {
        host: request.headers.host ?? '',
        ...(request.headers.origin ? { origin: request.headers.origin } : {}),
      },
    });
    const refusal =
      hostHeaderValidationResponse(check, localhostAllowedHostnames()) ??
      originValidationResponse(check, localhostAllowedOrigins());
    if (refusal !== undefined) {
      await sendWeb(refusal, response);
      return;
    }
    const id = request.headers['mcp-session-id'];
    if (typeof id === 'string') {
      const endpoint = endpoints.get(id);
      if (endpoint === undefined) {
        response.writeHead(404).end();
        return;
      }
      await endpoint.handle(request, response);
      if (request.method === 'DELETE') endpoints.delete(id);
      return;
    }
    const endpoint = await ('v1' in make ? openV1(make.v1(), options, register) : openV2(make.v2(), options, register));
    await endpoint.handle(request, response);
  };

  const http = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${String((http.address() as AddressInfo).port)}/mcp`,
    requests,
    cutConnections() {
      http.closeAllConnections();
    },
    forgetSessions() {
      endpoints.clear();
    },
    openSessions: () => endpoints.size,
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
      await Promise.allSettled([...endpoints.values()].map((endpoint) => endpoint.close()));
    },
  };
}
