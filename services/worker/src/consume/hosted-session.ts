/**
 * One session on this worker: its server instance, made when first needed, rebuilt from its record if the server may be
 * restored, and fed in the order of `inbound`. SPEC: WRK-ORDER, WRK-RESTORE.
 */
import { deadline } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcResponse, SessionRecord } from '@throughline/protocol';
import { HostError } from '../host/host.ts';
import type { HostCallbacks, HostSession, McpHost } from '../host/host.ts';
import type { OpenCall, SettledCall } from './open-call.ts';

export interface OutgoingRequest {
  /** The call whose stream carries it; `null`: the standalone stream. */
  readonly call: OpenCall | null;
  /** The id under which the server knows it. */
  readonly id: JsonRpcId;
}

/** Settled requests remembered a session, so that a repetition does not run again. */
const MAX_SETTLED = 512;
const RESTORE_DEADLINE_MS = 30_000;
const INTERNAL_PREFIX = 'throughline-restore-';

export interface HostedSessionOptions {
  readonly key: string;
  readonly server: string;
  readonly principal: string;
  readonly host: McpHost;
  readonly clock: Clock;
  /** What the server says, internal answers aside. */
  onMessage(session: HostedSession, message: JsonRpcMessage, related: JsonRpcId | undefined): Promise<void>;
  onCloseStream(session: HostedSession, related: JsonRpcId | 'standalone'): void;
  onGone(session: HostedSession, reason: string): void;
  /** An instance was made or is gone. */
  onInstance(by: 1 | -1): void;
}

export class HostedSession {
  readonly key: string;
  readonly server: string;
  readonly principal: string;
  /** Open calls by typed id. */
  readonly calls = new Map<string, OpenCall>();
  /** Calls that wait for a place, in order. */
  readonly queue: OpenCall[] = [];
  readonly settled = new Map<string, SettledCall>();
  /** Requests of the server that the client has not answered, by the id on the wire. */
  readonly outgoing = new Map<string, OutgoingRequest>();
  /** Running calls by their progress token. */
  readonly tokens = new Map<JsonRpcId, OpenCall>();
  readonly createdMs: number;
  record: SessionRecord | null;
  capabilities: Readonly<Record<string, unknown>> = {};
  running = 0;
  ended = false;
  standaloneSeen = false;
  lastActivityMs: number;
  /** Number of the current instance under this claim, from 1. */
  instanceNumber = 0;
  readonly #options: HostedSessionOptions;
  readonly #internal = new Map<string, (response: JsonRpcResponse) => void>();
  #instance: HostSession | null = null;
  #abort = new AbortController();
  #chain: Promise<void> = Promise.resolve();
  #internalCount = 0;

  constructor(options: HostedSessionOptions, record: SessionRecord | null, createdMs: number) {
    this.#options = options;
    this.key = options.key;
    this.server = options.server;
    this.principal = options.principal;
    this.record = record;
    this.createdMs = createdMs;
    this.lastActivityMs = options.clock.monoMs();
  }

  get isLoaded(): boolean {
    return this.#instance !== null;
  }

  /** Remembers a settled call, the oldest first to be forgotten. */
  remember(id: string, call: SettledCall): void {
    this.settled.delete(id);
    this.settled.set(id, call);
    if (this.settled.size <= MAX_SETTLED) return;
    const oldest = this.settled.keys().next();
    if (oldest.done !== true) this.settled.delete(oldest.value);
  }

  /** Hands messages to the server one after the other; makes or rebuilds the instance first if there is none. Rejects with `HostError`. */
  deliver(message: JsonRpcMessage, canPoll: boolean): Promise<void> {
    const delivered = this.#chain.then(async () => {
      if (this.ended) throw new HostError('HOST_GONE', 'the session has ended');
      const instance = this.#instance ?? (await this.#open());
      await instance.deliver(message, { canPoll });
    });
    this.#chain = delivered.catch(() => undefined);
    return delivered;
  }

  /** Ends the instance; a later `deliver` rebuilds it. Waits for what is being handed over. */
  async unload(): Promise<void> {
    const instance = this.#instance;
    this.#instance = null;
    this.#abort.abort();
    if (instance === null) return;
    this.#options.onInstance(-1);
    await instance.close();
  }

  async #open(): Promise<HostSession> {
    const options = this.#options;
    this.#abort = new AbortController();
    const number = ++this.instanceNumber;
    const isCurrent = (): boolean => number === this.instanceNumber && !this.ended;
    const callbacks: HostCallbacks = {
      onMessage: (message, related) => {
        if (!isCurrent() || this.#takeInternal(message)) return Promise.resolve();
        return options.onMessage(this, message, related);
      },
      onCloseStream: (related) => {
        if (isCurrent()) options.onCloseStream(this, related);
      },
      onGone: (reason) => {
        if (!isCurrent()) return;
        if (this.#instance !== null) options.onInstance(-1);
        this.#instance = null;
        this.#abort.abort();
        options.onGone(this, reason);
      },
    };
    const instance = await options.host.open(
      { sessionId: this.key, principal: this.principal, signal: this.#abort.signal },
      callbacks,
    );
    if (!isCurrent()) {
      await instance.close();
      throw new HostError('HOST_GONE', 'the session ended while its server started');
    }
    this.#instance = instance;
    options.onInstance(1);
    if (this.record !== null) await this.#restore(instance, this.record);
    return instance;
  }

  /** `initialize`, `initialized`, log level and subscriptions again, on a fresh server; its answers are swallowed. */
  async #restore(instance: HostSession, record: SessionRecord): Promise<void> {
    const initialized = await this.#ask(instance, record.initialize.method, record.initialize.params);
    const { result } = initialized;
    if (typeof result === 'object' && result !== null && 'capabilities' in result)
      this.capabilities = result.capabilities as Record<string, unknown>;
    if (!record.initialized) return;
    await instance.deliver({ jsonrpc: '2.0', method: 'notifications/initialized' }, { canPoll: false });
    if (record.logLevel !== null) await this.#ask(instance, 'logging/setLevel', { level: record.logLevel });
    for (const uri of record.subscriptions) await this.#ask(instance, 'resources/subscribe', { uri });
  }

  async #ask(
    instance: HostSession,
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
  ): Promise<JsonRpcResponse> {
    const id = `${INTERNAL_PREFIX}${this.instanceNumber}-${++this.#internalCount}`;
    const limit = deadline(this.#options.clock, RESTORE_DEADLINE_MS, this.#abort.signal);
    try {
      const answered = new Promise<JsonRpcResponse>((resolve, reject) => {
        this.#internal.set(id, resolve);
        limit.signal.addEventListener('abort', () => {
          reject(new HostError('HOST_TIMEOUT', `the server did not answer ${method} while its session was restored`));
        });
      });
      answered.catch(() => undefined);
      await instance.deliver(
        { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) },
        { canPoll: false },
      );
      const response = await answered;
      if (response.error !== undefined)
        throw new HostError(
          'HOST_GONE',
          `the server refused ${method} while its session was restored: ${response.error.message}`,
        );
      return response;
    } finally {
      this.#internal.delete(id);
      limit.dispose();
    }
  }

  #takeInternal(message: JsonRpcMessage): boolean {
    if ('method' in message || typeof message.id !== 'string' || !message.id.startsWith(INTERNAL_PREFIX)) return false;
    this.#internal.get(message.id)?.(message);
    return true;
  }
}
