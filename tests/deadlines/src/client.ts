/** A client that waits for ever: whoever makes it wait is found by how long it waited. */
import type { GatewayCore, ResponseSink } from '@throughline/gateway';
import type { Clock } from '@throughline/log';
import { sleep } from '@throughline/log';
import { encodeText } from '@throughline/protocol';
import type { JsonRpcId } from '@throughline/protocol';
import { readSse } from '../../../services/gateway/src/testing/sse-reading.ts';

/** How a step of a client ended. */
export type Outcome =
  | { readonly kind: 'result' }
  /** An error that says whether the call may have run. */
  | { readonly kind: 'error'; readonly code: string; readonly mayHaveRun: boolean; readonly isOver: boolean }
  /** Taken, or done, without a body. */
  | { readonly kind: 'done'; readonly status: number }
  /** Whatever the client was told, it cannot make sense of it. */
  | { readonly kind: 'fault'; readonly why: string };

interface Message {
  readonly id?: JsonRpcId;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: { readonly data?: Readonly<Record<string, unknown>> };
}

interface RequestOptions {
  onMessage?(message: Message): void;
  /** Goes away after as many messages, and comes back. */
  readonly leaveAfter?: number;
}

const RESUMES = 50;

export class CutClient {
  session: string | undefined;
  gateway: GatewayCore | null = null;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  call(id: JsonRpcId, tool: string, options: RequestOptions = {}): Promise<Outcome> {
    return this.request(id, 'tools/call', { name: tool, _meta: { progressToken: id } }, options);
  }

  /** A request, over as many connections as its answer takes. */
  async request(
    id: JsonRpcId,
    method: string,
    params: object,
    { onMessage, leaveAfter }: RequestOptions = {},
  ): Promise<Outcome> {
    let lastId: string | null = null;
    for (let connections = 0; connections < RESUMES; connections++) {
      const exchange: Exchange =
        lastId === null
          ? this.#send('POST', { jsonrpc: '2.0', id, method, params })
          : this.#send('GET', null, { 'last-event-id': lastId });
      let seen = 0;
      let outcome: Outcome | null = null;
      exchange.onBlock = (block) => {
        if (block.id !== undefined) lastId = block.id;
        if (block.data === undefined || block.data === '') return;
        const message = JSON.parse(block.data) as Message;
        if (message.id === id && message.method === undefined) outcome = outcomeOf(message);
        else onMessage?.(message);
        if (++seen === leaveAfter && connections === 0) exchange.leave();
      };
      await exchange.done;
      const { status, headers, text } = exchange;
      if (status === 200 && method === 'initialize') this.session ??= headers['Mcp-Session-Id'];
      if (outcome !== null) return outcome;
      if (status === 204) return { kind: 'done', status };
      if (status === 503 && lastId !== null) {
        await sleep(this.#clock, 1000);
        continue;
      }
      if (status !== 200) return refusalOf(status, headers, text);
      if (lastId === null) return { kind: 'fault', why: `the stream ended without an answer and without an id` };
      await sleep(this.#clock, 500);
    }
    return { kind: 'fault', why: `no answer over ${RESUMES} connections` };
  }

  /** A message that needs no answer. */
  async tell(message: object): Promise<Outcome> {
    const exchange = this.#send('POST', { jsonrpc: '2.0', ...message });
    await exchange.done;
    const { status, headers, text } = exchange;
    return status === 202 ? { kind: 'done', status } : refusalOf(status, headers, text);
  }

  async end(): Promise<Outcome> {
    const exchange = this.#send('DELETE', null);
    await exchange.done;
    const { status, headers, text } = exchange;
    return status === 204 ? { kind: 'done', status } : refusalOf(status, headers, text);
  }

  /** Opens the standalone stream. Resolves when its head came, or another answer; it stays open until the session or the gateway ends. */
  async listen(): Promise<Outcome> {
    const exchange = this.#send('GET', null);
    await Promise.race([exchange.done, exchange.begun]);
    const { status, headers, text } = exchange;
    return status === 200 ? { kind: 'done', status } : refusalOf(status, headers, text);
  }

  #send(method: string, body: object | null, extra: Readonly<Record<string, string>> = {}): Exchange {
    const headers: Readonly<Record<string, string | undefined>> = {
      host: 'localhost:8080',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-session-id': this.session,
      ...extra,
    };
    if (this.gateway === null) throw new TypeError('there is no gateway');
    return new Exchange(this.gateway, method, headers, body);
  }
}

class Exchange implements ResponseSink {
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  text = '';
  onBlock: (block: ReturnType<typeof readSse>[number]) => void = () => undefined;
  readonly done: Promise<void>;
  readonly begun: Promise<void>;
  readonly #gone = new AbortController();
  #begin = (): void => undefined;
  #read = 0;

  constructor(
    core: GatewayCore,
    method: string,
    headers: Readonly<Record<string, string | undefined>>,
    body: object | null,
  ) {
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    const request = {
      method,
      server: 'demo',
      header: (name: string) => headers[name],
      body: encodeText(body === null ? '' : JSON.stringify(body)),
      signal: this.#gone.signal,
    };
    const left = new Promise<void>((resolve) => {
      this.#gone.signal.addEventListener('abort', () => {
        resolve();
      });
    });
    this.done = Promise.race([core.handle(request, this), left]);
  }

  /** The client goes away. */
  leave(): void {
    this.#gone.abort();
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    this.status = status;
    this.headers = headers;
    this.#begin();
  }

  write(text: string): boolean {
    if (this.#gone.signal.aborted) return true;
    this.text += text;
    if (this.headers['Content-Type'] !== 'text/event-stream') return true;
    const blocks = readSse(this.text);
    for (const block of blocks.slice(this.#read)) if (!this.#gone.signal.aborted) this.onBlock(block);
    this.#read = blocks.length;
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  end(): void {
    this.#begin();
  }
}

function outcomeOf({ result, error }: Message): Outcome {
  if (error === undefined)
    return result === undefined ? { kind: 'fault', why: 'neither result nor error' } : { kind: 'result' };
  return judge(error.data ?? {});
}

/** A refused exchange says by its code that nothing was done, or that it may have been. */
function refusalOf(status: number, headers: Readonly<Record<string, string>>, text: string): Outcome {
  if (status === 503 && headers['Retry-After'] === undefined) return { kind: 'fault', why: '503 without Retry-After' };
  let data: Readonly<Record<string, unknown>> | undefined;
  try {
    data = (JSON.parse(text) as { error?: { data?: Readonly<Record<string, unknown>> } }).error?.data;
  } catch {
    return { kind: 'fault', why: `status ${status} without JSON: ${text.slice(0, 100)}` };
  }
  return data === undefined ? { kind: 'fault', why: `status ${status} without a code` } : judge(data);
}

/** Codes after which nothing was done (docs/reference/errors.md); of all others `mayHaveRun` has to speak. */
const NOT_DONE: readonly unknown[] = ['NO_OWNER', 'CAPACITY', 'DRAINING', 'LOG_UNAVAILABLE', 'SESSION_NOT_FOUND'];
const OVER: readonly unknown[] = ['SESSION_NOT_FOUND', 'SESSION_ENDED', 'EPOCH_MISMATCH'];

function judge({ code, mayHaveRun }: Readonly<Record<string, unknown>>): Outcome {
  if (typeof code !== 'string') return { kind: 'fault', why: 'an error without a code' };
  if (typeof mayHaveRun !== 'boolean' && !NOT_DONE.includes(code))
    return { kind: 'fault', why: `${code} does not say whether the call may have run` };
  return { kind: 'error', code, mayHaveRun: mayHaveRun === true, isOver: OVER.includes(code) };
}
