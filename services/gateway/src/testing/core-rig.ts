/** Gateway cores under virtual time over one memory store, with clients that record what they are told. */
import { openMemoryLog } from '@throughline/log/memory';
import type { Log } from '@throughline/log';
import { encodeText } from '@throughline/protocol';
import { noMetrics } from '@throughline/telemetry';
import type { LogFields, Logger, Metrics } from '@throughline/telemetry';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { GatewayConfigSchema } from '../config.ts';
import type { GatewayConfig } from '../config.ts';
import { startGatewayCore } from '../core.ts';
import type { GatewayCore } from '../core.ts';
import type { ResponseSink } from '../exchange.ts';
import { createBackend, keyOf } from './backend.ts';
import type { Backend, BackendOptions } from './backend.ts';
import { messagesOf, readSse } from './sse-reading.ts';
import type { SseBlock, SseMessage } from './sse-reading.ts';

export const SECRET = new Uint8Array(encodeText('a secret of the tests, 32 bytes long'));
export const OTHER_SECRET = new Uint8Array(encodeText('another secret of the tests, 32 bytes'));

/** Records an answer; refuses what a sink may not be asked to do. */
export class RecordingSink implements ResponseSink {
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  text = '';
  writes = 0;
  isEnded = false;
  /** The client takes nothing: `write` says so, and `drained` waits. */
  isBlocked = false;
  /** The largest amount written while blocked. */
  faults: string[] = [];
  readonly gone = new AbortController();
  #wake: (() => void) | null = null;

  head(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.status !== 0) this.faults.push('a second head');
    this.status = status;
    this.headers = headers;
  }

  write(text: string): boolean {
    if (this.status === 0) this.faults.push('written before the head');
    if (this.isEnded) this.faults.push('written after the end');
    if (this.gone.signal.aborted) this.faults.push('written after the client went');
    this.text += text;
    this.writes++;
    return !this.isBlocked;
  }

  drained(signal: AbortSignal): Promise<void> {
    if (!this.isBlocked || signal.aborted || this.gone.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.gone.signal.removeEventListener('abort', done);
        this.#wake = null;
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
      this.gone.signal.addEventListener('abort', done, { once: true });
    });
  }

  unblock(): void {
    this.isBlocked = false;
    this.#wake?.();
  }

  /** Takes what was written so far and stays blocked, as a client that reads one window. */
  takeOnce(): void {
    this.#wake?.();
  }

  end(): void {
    this.isEnded = true;
  }
}

export interface Exchange {
  readonly sink: RecordingSink;
  readonly done: Promise<void>;
  /** The client closes its connection. */
  abort(): void;
  blocks(): readonly SseBlock[];
  messages(): readonly SseMessage[];
  comments(): readonly string[];
  /** The JSON body of an answer that is no stream. */
  json(): {
    readonly id?: unknown;
    readonly error?: {
      readonly code: number;
      readonly message: string;
      readonly data: Readonly<Record<string, unknown>>;
    };
  };
}

export interface SendOptions {
  readonly session?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly server?: string;
  /** Block the sink from the start. */
  readonly isBlocked?: boolean;
}

export interface Peer {
  readonly core: GatewayCore;
  readonly log: Log;
  /** Starts an exchange and lets settle what can. */
  send(method: string, body: unknown, options?: SendOptions): Promise<Exchange>;
  post(session: string, message: unknown, options?: SendOptions): Promise<Exchange>;
  get(session: string, lastEventId?: string, options?: SendOptions): Promise<Exchange>;
}

export interface Rig {
  readonly time: VirtualTime;
  readonly backend: Backend;
  readonly logs: LogLine[];
  /** Another gateway on the same store. */
  gateway(config?: Partial<GatewayConfig>, log?: (log: Log) => Log, metrics?: Metrics): Promise<Peer>;
  /** An initialized session of the revision, known to all. */
  open(peer: Peer, version?: string, options?: SendOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly fields: LogFields;
}

export const JSON_HEADERS = {
  host: 'localhost:8080',
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};

/** A message of a client that is answered by nobody. */
export const NOTE = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };

export function call(
  id: string | number,
  method = 'tools/call',
  params: unknown = {},
): Readonly<Record<string, unknown>> {
  return { jsonrpc: '2.0', id, method, params };
}

export function initialize(version: string, id: string | number = 0): Readonly<Record<string, unknown>> {
  return call(id, 'initialize', {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 't', version: '1' },
  });
}

/** @param options of the store; the seed of the run is printed with failures of the virtual clock. */
export async function createRig(
  options: Omit<BackendOptions, 'clock'> & { readonly seed?: number } = {},
): Promise<Rig> {
  const { seed = 1, ...rest } = options;
  const time = createVirtualTime({ seed });
  const clock = time.clock();
  const backend = await createBackend({ clock, ...rest });
  const logs: LogLine[] = [];
  const peers: Peer[] = [];
  const exchanges: Exchange[] = [];
  const rig: Rig = {
    time,
    backend,
    logs,
    async gateway(config = {}, wrap = (log) => log, metrics = noMetrics) {
      const log = wrap(openMemoryLog(backend.log.store, { clock }));
      const full = GatewayConfigSchema.parse({
        servers: ['demo'],
        secrets: [SECRET],
        deadAfterMs: 1_000_000_000,
        keepAliveMs: 10_000_000,
        ...config,
      });
      const core = await time.run(
        startGatewayCore(full, { log, clock, random: time.random, logger: recordingLogger(logs), metrics }),
      );
      const peer: Peer = {
        core,
        log,
        async send(method, body, { session, headers = {}, server = 'demo', isBlocked = false } = {}) {
          const sink = new RecordingSink();
          sink.isBlocked = isBlocked;
          const all: Record<string, string | undefined> = {
            ...JSON_HEADERS,
            ...(session === undefined ? {} : { 'mcp-session-id': session }),
            ...headers,
          };
          const bytes =
            body instanceof Uint8Array
              ? body
              : encodeText(typeof body === 'string' ? body : body === null ? '' : JSON.stringify(body));
          const done = core.handle(
            { method, server, header: (name) => all[name], body: bytes, signal: sink.gone.signal },
            sink,
          );
          const exchange = makeExchange(sink, done);
          exchanges.push(exchange);
          await time.settle();
          return exchange;
        },
        post: (session, message, options = {}) => peer.send('POST', message, { session, ...options }),
        get: (session, lastEventId, options = {}) =>
          peer.send('GET', null, {
            session,
            ...options,
            headers: {
              accept: 'text/event-stream',
              ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
              ...options.headers,
            },
          }),
      };
      peers.push(peer);
      return peer;
    },
    async open(peer, version = '2025-11-25', options = {}) {
      const exchange = await peer.send('POST', initialize(version), options);
      const session = exchange.sink.headers['Mcp-Session-Id'];
      if (session === undefined) throw new TypeError(`initialize was refused: ${exchange.sink.text}`);
      const { partition } = keyOf(session);
      const request = (await backend.inbound(partition)).at(-1);
      if (request === undefined) throw new TypeError('initialize is not in the log');
      await backend.recordSession(session, version);
      await backend.say(
        session,
        { kind: 'request', at: request.offset },
        { jsonrpc: '2.0', id: 0, result: {} },
        { end: true },
      );
      await time.run(exchange.done);
      return session;
    },
    async stop() {
      for (const exchange of exchanges) exchange.abort();
      await time.settle();
      for (const { core } of peers) await time.run(core.stop());
      const faults = exchanges.flatMap(({ sink }) => sink.faults);
      if (faults.length > 0) throw new Error(`a sink was misused: ${faults.join(', ')}`);
    },
  };
  return rig;
}

/** The messages of a stream, parsed. */
export function dataOf(exchange: Exchange): unknown[] {
  return exchange.messages().map(({ data }) => JSON.parse(data) as unknown);
}

function makeExchange(sink: RecordingSink, done: Promise<void>): Exchange {
  return {
    sink,
    done,
    abort: () => sink.gone.abort(),
    blocks: () => readSse(sink.text),
    messages: () => messagesOf(sink.text),
    comments: () => readSse(sink.text).flatMap(({ comment }) => (comment === undefined ? [] : [comment])),
    json: () => JSON.parse(sink.text) as ReturnType<Exchange['json']>,
  };
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at =
    (level: LogLine['level']) =>
    (event: string, fields: LogFields = {}): void => {
      lines.push({ level, event, fields });
    };
  const logger: Logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
}
