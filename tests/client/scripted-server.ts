/** A server that says exactly what a test tells it to, as a `fetch`; it answers `initialize` by itself. */
import { waitUntil } from '@throughline/testkit/processes';
import type { Got } from './got.ts';

export interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  /** The JSON-RPC message of a POST. */
  readonly message: Got;
  readonly atMs: number;
}

export class Stream {
  readonly response: Response;
  /** Handed over one by one, so that what was said before a cut is still read. */
  readonly #steps: ((controller: ReadableStreamDefaultController<Uint8Array>) => void)[] = [];
  #wake: () => void = () => undefined;
  /** The client let go of it. */
  isCancelled = false;

  constructor(headers: Record<string, string>) {
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (this.#steps.length === 0 && !this.isCancelled)
            await new Promise<void>((resolve) => {
              this.#wake = resolve;
            });
          this.#steps.shift()?.(controller);
        },
        cancel: () => {
          this.isCancelled = true;
          this.#wake();
        },
      },
      { highWaterMark: 0 },
    );
    this.response = new Response(body, { headers: { 'Content-Type': 'text/event-stream', ...headers } });
  }

  #step(step: (controller: ReadableStreamDefaultController<Uint8Array>) => void): this {
    this.#steps.push(step);
    this.#wake();
    return this;
  }

  /** Bytes as they are. */
  raw(bytes: string | Uint8Array): this {
    const chunk = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes;
    return this.#step((controller) => controller.enqueue(chunk));
  }

  event(id: string | null, message: object | string): this {
    const data = typeof message === 'string' ? message : JSON.stringify(message);
    return this.raw(`${id === null ? '' : `id: ${id}\n`}data: ${data}\n\n`);
  }

  end(): this {
    return this.#step((controller) => controller.close());
  }

  cut(): this {
    return this.#step((controller) => controller.error(new TypeError('terminated')));
  }
}

/** `refused`: nobody listens, which the platform says; `unreachable`: nobody knows how far the request came. */
export type Answer = Response | Stream | 'unreachable' | 'refused';

const REFUSED = Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' });

export class ScriptedServer {
  readonly asked: Asked[] = [];
  /** Sent with every answer of `sse`. */
  headers: Record<string, string> = {};
  sessions = 0;
  capabilities: object = { tools: { listChanged: true } };
  /** What is answered to anything but the handshake. */
  answer: (asked: Asked) => Answer | Promise<Answer> = () => new Response(null, { status: 405 });
  onInitialize: (asked: Asked) => Answer = ({ message }) => {
    this.sessions++;
    this.headers = { ...this.headers, 'Mcp-Session-Id': `session-${this.sessions}` };
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: this.capabilities,
      serverInfo: { name: 'scripted', version: String(this.sessions) },
    };
    return json({ jsonrpc: '2.0', id: message.id, result }, this.headers);
  };

  sse(): Stream {
    return new Stream(this.headers);
  }

  readonly fetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const body = typeof init?.body === 'string' ? init.body : '{}';
    const asked: Asked = {
      url: String(url),
      method: init?.method ?? 'GET',
      headers: new Headers(init?.headers),
      message: JSON.parse(body) as Got,
      atMs: performance.now(),
    };
    this.asked.push(asked);
    const { method } = asked.message;
    const isHandshake = method === 'initialize' || method === 'notifications/initialized';
    const answer = !isHandshake
      ? await this.answer(asked)
      : method === 'initialize'
        ? this.onInitialize(asked)
        : new Response(null, { status: 202 });
    if (answer === 'unreachable') throw new TypeError('fetch failed');
    if (answer === 'refused') throw new TypeError('fetch failed', { cause: REFUSED });
    return answer instanceof Stream ? answer.response : answer;
  };

  /** The requests for a JSON-RPC method, or the GETs. */
  of(method: string): Asked[] {
    return this.asked.filter((each) => (method === 'GET' ? each.method === 'GET' : each.message.method === method));
  }

  async until(method: string, count = 1): Promise<Asked> {
    return await waitUntil(`${method} × ${count}`, () => this.of(method)[count - 1]);
  }
}

export function json(message: object, headers: Record<string, string> = {}, status = 200): Response {
  return new Response(JSON.stringify(message), { status, headers: { 'Content-Type': 'application/json', ...headers } });
}

export function page(status: number): Response {
  return new Response('<html><body>Please wait</body></html>', { status, headers: { 'Content-Type': 'text/html' } });
}
