/**
 * What lies between a client and the load balancer: passes each request on as it comes, keeps what was said, and can break
 * connections or put another cursor in the place of the client's. Clients in any language are observed by it alone.
 */
import { createServer, request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SseParser } from '@throughline/testkit/processes';
import type { SseItem } from '@throughline/testkit/processes';

export interface WireAnswer {
  readonly httpMethod: string;
  /** The JSON-RPC method of a POST; `undefined` for a reply, or for another HTTP method. */
  readonly method: string | undefined;
  /** As it was passed on. */
  readonly lastEventId: string | undefined;
  /** That the client named, or `undefined`. */
  readonly sessionId: string | undefined;
  /** 0: there was none, or not yet. */
  readonly status: number;
  /** When the request came, in milliseconds of `performance.now()`. */
  readonly askedMs: number;
  /** When the head of the answer came; 0 before. */
  readonly answeredMs: number;
  readonly items: readonly SseItem[];
  readonly isOpen: boolean;
}

export interface Wire extends AsyncDisposable {
  /** Where the client connects. */
  readonly url: string;
  /** In the order in which they were asked for. */
  readonly answers: readonly WireAnswer[];
  /** Breaks the open answers that fit; says how many there were. */
  cut(fits: (answer: WireAnswer) => boolean): number;
  /** What is sent instead of each `Last-Event-ID` from now on. */
  rewriteCursor(rewrite: (lastEventId: string) => string): void;
  /** Runs before the next request of this JSON-RPC method is passed on. */
  onceBefore(method: string, run: () => Promise<void>): void;
}

type Kept = { -readonly [Field in keyof WireAnswer]: WireAnswer[Field] } & { items: SseItem[] };

/** @param target the MCP endpoint that requests are passed on to. */
export async function startWire(target: string): Promise<Wire> {
  const answers: Kept[] = [];
  const open = new Map<Kept, ServerResponse>();
  let rewrite: (lastEventId: string) => string = (same) => same;
  let before: { readonly method: string; readonly run: () => Promise<void> } | undefined;

  const pass = async (incoming: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> => {
    const cursor = textOf(incoming.headers['last-event-id']);
    const headers: IncomingHttpHeaders = { ...incoming.headers, connection: 'close' };
    if (cursor !== undefined) headers['last-event-id'] = rewrite(cursor);
    const kept: Kept = {
      ...{ httpMethod: incoming.method ?? 'GET', method: methodOf(body), items: [], isOpen: true },
      ...{ lastEventId: textOf(headers['last-event-id']), sessionId: textOf(headers['mcp-session-id']) },
      ...{ status: 0, askedMs: performance.now(), answeredMs: 0 },
    };
    answers.push(kept);
    open.set(kept, response);
    const end = (): void => {
      kept.isOpen = false;
      open.delete(kept);
    };
    response.on('close', end);
    if (before !== undefined && before.method === kept.method) {
      const { run } = before;
      before = undefined;
      await run();
    }
    // Whatever path it is: some look for metadata in well-known places.
    const asked = request(
      new URL(incoming.url ?? '', target),
      { method: kept.httpMethod, headers, agent: false },
      (answer) => {
        kept.status = answer.statusCode ?? 0;
        kept.answeredMs = performance.now();
        response.writeHead(kept.status, answer.headers);
        response.flushHeaders();
        const parser = new SseParser((item) => kept.items.push(item));
        if (answer.headers['content-type']?.startsWith('text/event-stream') === true)
          answer.on('data', (chunk: Buffer) => {
            parser.push(chunk);
          });
        answer.pipe(response);
        // An answer that is cut is cut for the client as well.
        answer.on('close', () => {
          if (!answer.complete) response.destroy();
        });
      },
    );
    asked.on('error', () => response.destroy());
    response.on('close', () => asked.destroy());
    asked.end(body);
  };

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      pass(incoming, Buffer.concat(chunks), response).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    answers,
    cut(fits) {
      const chosen = [...open].filter(([kept]) => fits(kept));
      for (const [, response] of chosen) response.destroy();
      return chosen.length;
    },
    rewriteCursor(next) {
      rewrite = next;
    },
    onceBefore(method, run) {
      before = { method, run };
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
    },
  };
}

function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function methodOf(body: Buffer): string | undefined {
  try {
    const { method } = JSON.parse(body.toString('utf8')) as { method?: unknown };
    return typeof method === 'string' ? method : undefined;
  } catch {
    return undefined;
  }
}
