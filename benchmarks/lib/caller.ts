/** A client as lean as can be, so that what is measured is the server: one kept connection, text in, text out. */
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';

export interface Stream {
  readonly status: number;
  readonly sessionId: string | undefined;
  /** What came so far. */
  text(): string;
  /** Resolves when the text has `mark` at or after `from`, with the place behind it. Rejects when the body ends without it. */
  until(mark: string, from?: number): Promise<number>;
  readonly ended: Promise<void>;
  cut(): void;
}

let adopted = 0;

const ACCEPT = 'application/json, text/event-stream';

export class Caller {
  readonly #agent: Agent;
  readonly #url: URL;
  #sessionId = '';
  #id = 1;

  constructor(url: string, agent = new Agent({ keepAlive: true, maxSockets: Infinity })) {
    this.#url = new URL(url);
    this.#agent = agent;
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  /** Speaks in a session that another caller has initialized. Its ids are its own. */
  adopt(sessionId: string): void {
    this.#sessionId = sessionId;
    this.#id = 1_000_000 + ++adopted * 100_000;
  }

  async initialize(): Promise<void> {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
    const stream = await this.send('POST', { jsonrpc: '2.0', id: 1, method: 'initialize', params });
    await stream.until('"serverInfo"');
    await stream.ended;
    if (stream.sessionId === undefined) throw new Error(`no session: ${stream.text()}`);
    this.#sessionId = stream.sessionId;
    await (
      await this.send('POST', { jsonrpc: '2.0', method: 'notifications/initialized' })
    ).ended;
  }

  /** Resolves with the stream of the call, which may go on. */
  async start(name: string, args: object, withProgress = false): Promise<Stream & { readonly id: number }> {
    const id = ++this.#id;
    const meta = withProgress ? { _meta: { progressToken: id } } : {};
    const stream = await this.send('POST', {
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: args, ...meta },
    });
    return Object.assign(stream, { id });
  }

  /** Milliseconds until the result is here. */
  async call(name: string, args: object): Promise<number> {
    const startedAt = performance.now();
    const stream = await this.start(name, args);
    await stream.until('"result"');
    const ms = performance.now() - startedAt;
    await stream.ended;
    return ms;
  }

  get(lastEventId?: string): Promise<Stream> {
    return this.send('GET', undefined, lastEventId);
  }

  close(): void {
    this.#agent.destroy();
  }

  async send(method: 'GET' | 'POST', message: unknown, lastEventId?: string): Promise<Stream> {
    const body = message === undefined ? undefined : JSON.stringify(message);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        this.#url,
        {
          method,
          agent: this.#agent,
          headers: {
            accept: ACCEPT,
            ...(body === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
            ...(this.#sessionId === ''
              ? {}
              : { 'mcp-session-id': this.#sessionId, 'mcp-protocol-version': '2025-11-25' }),
            ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
          },
        },
        resolve,
      );
      sent.on('error', reject);
      sent.end(body);
    });
    return readStream(response);
  }
}

function readStream(response: IncomingMessage): Stream {
  let text = '';
  let isOver = false;
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const check of [...waiting]) check();
  };
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    wake();
  });
  response.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => {
    response.on('close', () => {
      isOver = true;
      resolve();
      wake();
    });
  });
  const session = response.headers['mcp-session-id'];
  return {
    status: response.statusCode ?? 0,
    sessionId: typeof session === 'string' ? session : undefined,
    text: () => text,
    until: (mark, from = 0) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const at = text.indexOf(mark, from);
          if (at === -1 && !isOver) return;
          waiting.delete(check);
          if (at === -1) reject(new Error(`status ${response.statusCode ?? 0}, no ${mark} in: ${text.slice(-500)}`));
          else resolve(at + mark.length);
        };
        waiting.add(check);
        check();
      }),
    ended,
    cut: () => response.destroy(),
  };
}

/** The first `id:` of a stream. */
export function firstId(text: string): string {
  const id = /^id: (.+)$/m.exec(text)?.[1];
  if (id === undefined) throw new Error(`no id in ${text}`);
  return id;
}

/** Runs `work` for each item, at most `width` at once. */
export async function eachOf<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}

/** Callers with a session each, opened `width` at once over `agent`. */
export async function openSessions(url: string, count: number, width: number, agent: Agent): Promise<Caller[]> {
  const callers: Caller[] = [];
  await eachOf(Array.from({ length: count }), width, async () => {
    const caller = new Caller(url, agent);
    await caller.initialize();
    callers.push(caller);
  });
  return callers;
}
