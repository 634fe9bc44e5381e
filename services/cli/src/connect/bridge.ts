/**
 * Between a client on stdio and a session over HTTP: each message goes through as it is, in order. Knows neither files nor
 * processes. SPEC: CONNECT-THROUGH, CONNECT-STDIN, CONNECT-BOUNDED, CONNECT-START, CONNECT-CLOSE.
 */
import { TransportError } from '@throughline/client';
import type { WireMessage } from '@throughline/client';
import { settlesWithin, systemClock } from '@throughline/log';
import { classifyText, errorResponse } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse } from '@throughline/protocol';
import { describeError, describeFix } from './describe-trouble.ts';
import type { LineWriter } from './line-writer.ts';
import { readLines } from './read-lines.ts';

/** What the bridge uses of a `ResumableTransport`. */
export interface BridgeTransport {
  /** What it returns is waited for. */
  onmessage?: ((message: WireMessage) => unknown) | undefined;
  start(): Promise<void>;
  send(message: WireMessage): Promise<void>;
  terminateSession(): Promise<void>;
  setSupportedProtocolVersions(versions: string[]): void;
}

export interface BridgeOptions {
  readonly transport: BridgeTransport;
  readonly input: AsyncIterable<Uint8Array>;
  readonly writer: Pick<LineWriter, 'write' | 'lost'>;
  /** Until `initialize` is answered. */
  readonly startWithinMs: number;
  /** For answers that are due when the input ends. */
  readonly lingerMs: number;
  /** Whether a person is asked for something: `initialize` may take as long as that. Bounded by whoever asks. */
  isWaiting?(): boolean;
  /** More about why the server lets nobody in, for the client. */
  explain?(): string | null;
  /** The newest trouble on the way, since there is no session. */
  trouble?(): Error | null;
  /** Somebody wants it to end. */
  readonly signal: AbortSignal;
  /** A line for the person who looks after it. */
  tell(text: string): void;
  /** `initialize` is answered with a result: by a session that was kept, or by a new one. */
  onSession?(result: Readonly<Record<string, unknown>>): void;
}

export type BridgeEnd =
  /** The client closed stdin. */
  | { readonly kind: 'closed' }
  /** Nobody reads stdout any more. */
  | { readonly kind: 'output-lost' }
  | { readonly kind: 'stopped' }
  /** There is no session, and why was told to the client. */
  | { readonly kind: 'no-session'; readonly why: string };

/** Bytes of a message of the client. What a server takes is mostly less. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Messages of the client that are read ahead, so that the end of its input is seen while the server is out of reach. */
const MAX_QUEUED = 256;
const MAX_QUEUED_CHARS = 16 * 1024 * 1024;
/** Calls of the client that may be open at once; more are answered with an error. */
const MAX_CALLS = 1000;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const SERVER_ERROR = -32000;

/** Runs until one of its ends has come. Never rejects. The transport is left open. */
export async function runBridge(options: BridgeOptions): Promise<BridgeEnd> {
  const bridge = new Bridge(options);
  await options.transport.start();
  return await bridge.run();
}

class Bridge {
  readonly #options: BridgeOptions;
  readonly #noSession = Promise.withResolvers<BridgeEnd>();
  /** By their ids as JSON. */
  readonly #calls = new Set<string>();
  #onIdle: () => void = () => undefined;
  /** The `initialize` that is not answered. */
  #initialize: { readonly key: string; readonly answered: () => void } | null = null;
  #hasInitialized = false;
  #tail = Promise.resolve();
  #queued = 0;
  #queuedChars = 0;

  constructor(options: BridgeOptions) {
    this.#options = options;
    // The transport waits for what a handler returns: a slow reader slows the streams down, and nothing piles up.
    options.transport.onmessage = (message) => this.#deliver(message);
  }

  async run(): Promise<BridgeEnd> {
    const { signal, writer, lingerMs } = this.#options;
    const stopped = new Promise<BridgeEnd>((resolve) => {
      const stop = (): void => {
        resolve({ kind: 'stopped' });
      };
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
    });
    const lost = writer.lost.then((): BridgeEnd => ({ kind: 'output-lost' }));
    const read = this.#read().then(async (): Promise<BridgeEnd> => {
      await settlesWithin(systemClock, this.#finished(), lingerMs);
      return this.#initialize === null
        ? { kind: 'closed' }
        : { kind: 'no-session', why: 'the client left before the server answered initialize' };
    });
    return await Promise.race([stopped, lost, this.#noSession.promise, read]);
  }

  async #read(): Promise<void> {
    try {
      for await (const line of readLines(this.#options.input, MAX_LINE_BYTES)) {
        if (line.kind === 'too-long') await this.#queue(null);
        else if (line.text.trim() !== '') await this.#queue(line.text);
      }
    } catch (error) {
      this.#options.tell(`stdin cannot be read any more: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Resolves when there is room for another one. `null`: one that was too long to keep. */
  async #queue(text: string | null): Promise<void> {
    const chars = text?.length ?? 0;
    this.#queued++;
    this.#queuedChars += chars;
    this.#tail = this.#tail.then(async () => {
      await (text === null ? this.#refuse(null, INVALID_REQUEST, TOO_LONG) : this.#take(text));
      this.#queued--;
      this.#queuedChars -= chars;
    });
    if (this.#queued >= MAX_QUEUED || this.#queuedChars >= MAX_QUEUED_CHARS) await this.#tail;
  }

  /** One message of the client. Never rejects. */
  async #take(text: string): Promise<void> {
    const classified = classifyText(text);
    if ('fault' in classified) {
      const { id, isJson } = idOf(text);
      await this.#refuse(id, isJson ? INVALID_REQUEST : PARSE_ERROR, `Not sent: ${classified.fault}`);
      return;
    }
    const { kind, message } = classified;
    try {
      if (kind === 'request' && message.method === 'initialize') await this.#begin(message);
      else if (kind === 'request') await this.#call(message);
      else {
        if (kind === 'notification' && message.method === 'notifications/cancelled')
          this.#settled(message.params?.['requestId'] as JsonRpcId);
        await this.#options.transport.send(message);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const what = kind === 'response' ? 'an answer to the server' : `${message.method} of the client`;
      this.#options.tell(`${what} was not taken: ${why}`);
      // No call hangs.
      if (kind === 'request') await this.#deliver(failure(message.id, why));
    }
  }

  async #call(message: JsonRpcRequest): Promise<void> {
    if (this.#calls.size >= MAX_CALLS) {
      await this.#refuse(message.id, SERVER_ERROR, `Not sent: ${MAX_CALLS} calls are open`, { mayHaveRun: false });
      return;
    }
    if (this.#calls.has(keyOf(message.id))) {
      // Under its id the answer would be taken for that of the open one.
      await this.#refuse(null, INVALID_REQUEST, `Not sent: a call with the id ${keyOf(message.id)} is open`);
      return;
    }
    this.#calls.add(keyOf(message.id));
    await this.#options.transport.send(message);
  }

  /** Nothing else is sent before there is a session. */
  async #begin(message: JsonRpcRequest): Promise<void> {
    const { transport, startWithinMs, isWaiting, tell } = this.#options;
    if (this.#hasInitialized)
      await transport.terminateSession().catch((error: unknown) => {
        tell(`the former session could not be ended: ${error instanceof Error ? error.message : String(error)}`);
      });
    this.#hasInitialized = true;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const answered = (): void => {
      resolve(undefined);
    };
    this.#initialize = { key: keyOf(message.id), answered };
    const sent = transport.send(message);
    const over = Promise.all([sent, promise]);
    do {
      if (!(await settlesWithin(systemClock, over, startWithinMs))) continue;
      await sent;
      return;
    } while (isWaiting?.() === true);
    await this.#deliver(this.#silence(message.id));
  }

  /** Instead of an answer to `initialize`: what kept it away, as far as that is known. */
  #silence(id: JsonRpcId): JsonRpcResponse {
    const { startWithinMs, trouble } = this.#options;
    const error = trouble?.() ?? null;
    const why = `the server did not answer initialize within ${startWithinMs / 1000} s`;
    if (error === null) return failure(id, `${why}; --start-within waits longer`, { code: 'NO_ANSWER' });
    const { code, causeCode } = error instanceof TransportError ? error : { code: undefined, causeCode: undefined };
    const data = { ...(code === undefined ? {} : { code }), ...(causeCode === undefined ? {} : { cause: causeCode }) };
    return failure(id, `${why}: ${describeError(error)}`, data);
  }

  async #deliver(given: WireMessage): Promise<void> {
    const { method, id } = given;
    const isAnswer = method === undefined && id !== undefined && id !== null;
    const key = isAnswer ? keyOf(id) : null;
    const begun = key !== null && key === this.#initialize?.key ? this.#initialize : null;
    const message = begun === null ? given : this.#explained(given);
    if (begun !== null) {
      this.#initialize = null;
      this.#begun(message as JsonRpcMessage);
    }
    await this.#options.writer.write(JSON.stringify(message));
    if (begun !== null) {
      begun.answered();
      const why = refusalOf(message);
      if (why !== null) this.#noSession.resolve({ kind: 'no-session', why });
    } else if (key !== null) this.#settled(message.id as JsonRpcId);
  }

  /** The answer to `initialize`: whoever is not let in is told what can be done about it. */
  #explained(message: WireMessage): WireMessage {
    if (message.error === undefined)
      return isObject(message.result)
        ? message
        : failure(message.id as JsonRpcId, 'the server answered initialize with no result');
    const error = message.error as {
      readonly message: string;
      readonly data?: { readonly type?: unknown; readonly code?: unknown };
    };
    const { type, code } = error.data ?? {};
    const fix = type === 'TransportError' ? describeFix(code) : null;
    const more = isLockedOut(message) ? (this.#options.explain?.() ?? null) : fix;
    if (more === null) return message;
    return { ...message, error: { ...error, message: `${error.message}: ${more}` } };
  }

  #begun(message: JsonRpcMessage): void {
    if (!('result' in message)) return;
    const result = message.result as Readonly<Record<string, unknown>>;
    // A server that is replaced while the client is there must go on speaking what the client speaks.
    const version = result['protocolVersion'];
    if (typeof version === 'string') this.#options.transport.setSupportedProtocolVersions([version]);
    this.#options.onSession?.(result);
  }

  #settled(id: JsonRpcId): void {
    this.#calls.delete(keyOf(id));
    if (this.#calls.size === 0) this.#onIdle();
  }

  /** Everything read was taken, and every call answered. */
  async #finished(): Promise<void> {
    await this.#tail;
    if (this.#calls.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  async #refuse(id: JsonRpcId | null, code: number, message: string, data: object = {}): Promise<void> {
    this.#options.tell(message);
    await this.#options.writer.write(JSON.stringify(errorResponse(id, { code, message, data: { ...data } })));
  }
}

const TOO_LONG = `Not sent: a message of more than ${MAX_LINE_BYTES / 1024 / 1024} MiB`;

function failure(id: JsonRpcId, message: string, more: object = {}): JsonRpcResponse {
  const data = { type: 'TransportError', ...more, mayHaveRun: false };
  return errorResponse(id, { code: SERVER_ERROR, message, data });
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function keyOf(id: JsonRpcId): string {
  return JSON.stringify(id);
}

function idOf(text: string): { readonly id: JsonRpcId | null; readonly isJson: boolean } {
  try {
    const { id } = (JSON.parse(text) ?? {}) as { readonly id?: unknown };
    return { id: typeof id === 'string' || Number.isSafeInteger(id) ? (id as JsonRpcId) : null, isJson: true };
  } catch {
    return { id: null, isJson: false };
  }
}

function isLockedOut({ error }: WireMessage): boolean {
  const status = (error as { readonly data?: { readonly status?: unknown } }).data?.status;
  return status === 401 || status === 403;
}

/** Why there is no session; `null`: there is one, or the server itself answered so, and the client may ask otherwise. */
function refusalOf({ error }: WireMessage): string | null {
  const { message, data } = (error ?? {}) as {
    readonly message?: unknown;
    readonly data?: { readonly type?: unknown; readonly status?: unknown };
  };
  const isOurs = data?.type === 'TransportError' || data?.type === 'ResumptionRejected';
  const isRefused = typeof data?.status === 'number' && data.status !== 400;
  return error !== undefined && (isOurs || isRefused) ? String(message) : null;
}
