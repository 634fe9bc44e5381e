/** A client that speaks the wire itself: sees every id, resumes where it wants, and says each request on the endpoint it chooses. */
import { describeAnswer, exchange } from './http-exchange.ts';
import type { ExchangeOptions, HttpAnswer } from './http-exchange.ts';

export interface RawClientOptions {
  /** Default 2025-11-25. */
  readonly version?: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds until the head of each answer must have come, else the request rejects. Default: as long as it takes. */
  readonly headMs?: number;
  /** As of {@link ExchangeOptions}. */
  readonly ca?: string;
}

type Params = Readonly<Record<string, unknown>>;

export class RawClient {
  readonly sessionId: string;
  readonly version: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #wire: Pick<ExchangeOptions, 'headMs' | 'ca'>;
  #lastRequest = 1;

  private constructor(sessionId: string, version: string, options: RawClientOptions) {
    this.sessionId = sessionId;
    this.version = version;
    this.#headers = options.headers ?? {};
    this.#wire = wireOf(options);
  }

  /** Initializes a session on `url`. */
  static async connect(url: string, options: RawClientOptions = {}): Promise<RawClient> {
    const { version = '2025-11-25', capabilities = {}, headers = {} } = options;
    const answer = await exchange(url, {
      ...wireOf(options),
      method: 'POST',
      headers: { ...headers, ...POST_HEADERS },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1.0.0' } },
      }),
    });
    if (answer.status !== 200) throw new Error(`initialize: ${answer.status} ${await answer.text()}`);
    await answer.until('the answer to initialize', ({ data }) => data.includes('"serverInfo"'));
    const sessionId = answer.headers['mcp-session-id'];
    if (typeof sessionId !== 'string') throw new Error(`initialize names no session: ${describeAnswer(answer)}`);
    const client = new RawClient(sessionId, version, options);
    const initialized = await client.notify(url, 'notifications/initialized');
    if (initialized.status !== 202) throw new Error(`initialized: ${initialized.status} ${await initialized.text()}`);
    return client;
  }

  /** Another client that speaks in an existing session. Its ids are its own. */
  static of(sessionId: string, options: RawClientOptions = {}): RawClient {
    return new RawClient(sessionId, options.version ?? '2025-11-25', options);
  }

  /** An id that this client has not used. */
  nextId(): number {
    return ++this.#lastRequest;
  }

  /** POSTs a request; the answer is its stream. */
  request(url: string, method: string, params: Params = {}, id: number | string = this.nextId()): Promise<HttpAnswer> {
    return this.post(url, { jsonrpc: '2.0', id, method, params });
  }

  /** Calls a tool. With `progressToken` equal to the id, so that progress is reported. */
  callTool(url: string, name: string, args: Params = {}, id: number | string = this.nextId()): Promise<HttpAnswer> {
    return this.request(url, 'tools/call', { name, arguments: args, _meta: { progressToken: id } }, id);
  }

  notify(url: string, method: string, params: Params = {}): Promise<HttpAnswer> {
    return this.post(url, { jsonrpc: '2.0', method, params });
  }

  post(url: string, message: unknown): Promise<HttpAnswer> {
    return exchange(url, {
      ...this.#wire,
      method: 'POST',
      headers: { ...this.#own(), ...POST_HEADERS },
      body: JSON.stringify(message),
    });
  }

  /** GET with a cursor. */
  resume(url: string, lastEventId: string): Promise<HttpAnswer> {
    const headers = { ...this.#own(), Accept: 'text/event-stream', 'Last-Event-ID': lastEventId };
    return exchange(url, { ...this.#wire, method: 'GET', headers });
  }

  /** GET without a cursor: a standalone stream. */
  listen(url: string): Promise<HttpAnswer> {
    return exchange(url, { ...this.#wire, method: 'GET', headers: { ...this.#own(), Accept: 'text/event-stream' } });
  }

  end(url: string): Promise<HttpAnswer> {
    return exchange(url, { ...this.#wire, method: 'DELETE', headers: this.#own() });
  }

  #own(): Record<string, string> {
    return { ...this.#headers, 'Mcp-Session-Id': this.sessionId, 'MCP-Protocol-Version': this.version };
  }
}

const POST_HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

function wireOf({ headMs, ca }: RawClientOptions): Pick<ExchangeOptions, 'headMs' | 'ca'> {
  return { ...(headMs === undefined ? {} : { headMs }), ...(ca === undefined ? {} : { ca }) };
}
