/**
 * A small HTTP load balancer without stickiness: each request goes to the next target that is ready. Like real ones it
 * tries another target only if no connection came about, never after a request was sent.
 */
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface BalancerTarget {
  /** Its MCP endpoint. */
  readonly url: string;
  readonly adminUrl: string;
}

export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** Requests that were answered by each target, by its endpoint. */
  readonly served: ReadonlyMap<string, number>;
}

const CHECK_MS = 50;

/** @param targets those that there are now; asked again and again. */
export async function startBalancer(targets: () => readonly BalancerTarget[]): Promise<Balancer> {
  const ready = new Set<string>();
  const served = new Map<string, number>();
  let turn = 0;
  let isClosed = false;

  const check = async (): Promise<void> => {
    await Promise.all(
      targets().map(async ({ url, adminUrl }) => {
        if (await isReady(adminUrl)) ready.add(url);
        else ready.delete(url);
      }),
    );
  };
  let timer: NodeJS.Timeout | undefined;
  const checkAgain = async (): Promise<void> => {
    await check();
    if (!isClosed) timer = setTimeout(() => void checkAgain(), CHECK_MS);
  };
  await checkAgain();

  const forward = (incoming: IncomingMessage, body: Buffer, response: ServerResponse, left: number): void => {
    const known = targets().filter(({ url }) => ready.has(url));
    const target = known[turn++ % Math.max(1, known.length)];
    if (target === undefined || left === 0) {
      response.writeHead(503, { 'Retry-After': '1' }).end();
      return;
    }
    let isConnected = false;
    const sent = request(
      target.url,
      { method: incoming.method ?? 'GET', headers: { ...incoming.headers, connection: 'close' }, agent: false },
      (answer) => {
        served.set(target.url, (served.get(target.url) ?? 0) + 1);
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
        answer.on('close', () => {
          if (!answer.complete) response.destroy();
        });
      },
    );
    sent.on('socket', (socket) => {
      socket.once('connect', () => {
        isConnected = true;
      });
    });
    sent.on('error', () => {
      if (isConnected) {
        response.destroy();
        return;
      }
      ready.delete(target.url);
      forward(incoming, body, response, left - 1);
    });
    response.on('close', () => sent.destroy());
    sent.end(body);
  };

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      forward(incoming, Buffer.concat(chunks), response, 5);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    served,
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(timer);
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
    },
  };
}

function isReady(adminUrl: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(`${adminUrl}/readyz`, { agent: false, timeout: 2000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => {
      resolve(false);
    });
    asked.end();
  });
}
