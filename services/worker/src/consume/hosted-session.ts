/**
 * One session on this worker: its server instance, made when first needed, rebuilt from its record if the server may be
 * restored, and fed in the order of `inbound`. SPEC: WRK-ORDER, WRK-RESTORE.
 */
import { deadline } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, SessionRecord } from '@throughline/protocol';
import { HOST_MS, hostWithin } from './host-deadlines.ts';
import { HostError } from '../host/host.ts';
import type { HostCallbacks, HostSession, McpHost } from '../host/host.ts';
import { DEDUPE_MS } from './dedupe-window.ts';
import type { OpenCall, SettledCall } from './open-call.ts';

export interface OutgoingRequest {
  /** The call whose stream carries it; `null`: the standalone stream. */
  readonly call: OpenCall | null;
  /** The id under which the server knows it; `null`: a former owner's server asked, and this one has not yet. */
  readonly id: JsonRpcId | null;
  /** The call with which it is withdrawn, if that is another than `call`. */
  readonly askedBy?: OpenCall;
}

/** All instances that the worker may have are taken. */
export class NoSeatError extends Error {
  override readonly name = 'NoSeatError';
}

/** A fresh server refused what the session had set up: the session cannot go on as what it was. */
export class RestoreRefusedError extends Error {
  override readonly name = 'RestoreRefusedError';
}

/** Settled requests remembered a session, however old, and how many at most within the window of repetitions. */
const KEPT_SETTLED = 512;
const MAX_SETTLED = 16_384;
/** Messages of the client that wait for the server to take them, requests aside, which have bounds of their own. */
const MAX_WAITING = 1000;
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
  onCloseStream(session: HostedSession, related: JsonRpcId): void;
  onGone(session: HostedSession, reason: string, details?: string): void;
  /** A new instance takes messages. */
  onReady(session: HostedSession): void;
  /** Before an instance is made; `false`: there may be no more. */
  takeSeat(): boolean;
  /** An instance is gone. */
  freeSeat(): void;
}

interface Instance {
  readonly number: number;
  readonly abort: AbortController;
  readonly asked: Map<string, (response: JsonRpcResponse) => void>;
  host: HostSession | null;
  isReady: boolean;
  isOver: boolean;
}

export class HostedSession {
  readonly key: string;
  readonly server: string;
  readonly principal: string;
  /** Open calls by typed id. */
  readonly calls = new Map<string, OpenCall>();
  /** Calls that wait for a place, in order. */
  readonly queue: OpenCall[] = [];
  readonly settled = new Map<string, SettledCall & { readonly atMonoMs: number }>();
  /** Requests of the server that the client has not answered, by the id on the wire. */
  readonly outgoing = new Map<string, OutgoingRequest>();
  /** Running calls by their progress token. */
  readonly tokens = new Map<JsonRpcId, OpenCall>();
  readonly createdMs: number;
  record: SessionRecord | null;
  capabilities: Readonly<Record<string, unknown>> = {};
  running = 0;
  ended = false;
  /** The client has listened on a standalone stream, as far as this owner knows. */
  standaloneSeen = false;
  /** The client listened anew, or listened to a former owner: it may have missed what changed. */
  mayHaveMissed = false;
  lastActivityMs: number;
  /** When something was last said on the standalone stream, or it was opened. */
  lastStandaloneMs: number;
  /** What the client does not declare and was asked for all the same: told once each. */
  readonly undeclared = new Set<string>();
  /** Number of the newest instance under this claim, from 1. */
  instanceNumber = 0;
  readonly #options: HostedSessionOptions;
  #instance: Instance | null = null;
  #chain: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #askCount = 0;

  constructor(options: HostedSessionOptions, record: SessionRecord | null, createdMs: number) {
    this.#options = options;
    this.key = options.key;
    this.server = options.server;
    this.principal = options.principal;
    this.record = record;
    this.createdMs = createdMs;
    this.lastActivityMs = options.clock.monoMs();
    this.lastStandaloneMs = this.lastActivityMs;
  }

  /** What the client said that it can do, from the moment its server may ask. */
  get clientCapabilities(): Readonly<Record<string, unknown>> {
    const capabilities = (this.record?.initialize ?? this.#beginning())?.params?.['capabilities'];
    return typeof capabilities === 'object' && capabilities !== null ? (capabilities as Record<string, unknown>) : {};
  }

  /** `initialize` while it is not answered. */
  #beginning(): JsonRpcRequest | undefined {
    return [...this.calls.values()].find(({ message }) => message.method === 'initialize')?.message;
  }

  /** Its instance takes messages. */
  get isLoaded(): boolean {
    return this.#instance?.isReady === true;
  }

  /** Too many messages wait for the server to take them. */
  get isClogged(): boolean {
    return this.#waiting >= MAX_WAITING;
  }

  /** Remembers a settled call: for a minute in any case, the newest for longer. */
  remember(id: string, call: SettledCall): void {
    const now = this.#options.clock.monoMs();
    this.settled.delete(id);
    this.settled.set(id, { ...call, atMonoMs: now });
    for (const [oldest, { atMonoMs }] of this.settled) {
      if (this.settled.size <= KEPT_SETTLED) return;
      if (this.settled.size <= MAX_SETTLED && now - atMonoMs <= DEDUPE_MS) return;
      this.settled.delete(oldest);
    }
  }

  /**
   * Hands messages to the server one after the other; makes or rebuilds the instance first if there is none. Rejects
   * with `HostError`, `NoSeatError` or `RestoreRefusedError`.
   * @param isWanted asked when its turn has come, and again when the server is there; if not, nothing is handed over.
   * @param onHandOver called before the server may see it.
   */
  deliver(
    message: JsonRpcMessage,
    canPoll: boolean,
    isWanted: () => boolean | Promise<boolean> = () => true,
    onHandOver = (): void => undefined,
  ): Promise<void> {
    this.#waiting++;
    const delivered = this.#chain.then(async () => {
      this.#waiting--;
      if (!(await isWanted())) return;
      if (this.ended) throw new HostError('HOST_GONE', 'the session has ended');
      let host = this.#instance?.host ?? null;
      if (host === null) {
        host = await this.#open();
        if (!(await isWanted())) return;
      }
      onHandOver();
      await this.#handOver(host, message, canPoll);
    });
    this.#chain = delivered.catch(() => undefined);
    return delivered;
  }

  /** Ends the instance; a later `deliver` rebuilds it. What it still says is dropped. Rejects if the host cannot close it. */
  async unload(): Promise<void> {
    const instance = this.#instance;
    if (instance === null) return;
    this.#over(instance);
    await this.#close(instance);
  }

  async #close({ host }: Instance): Promise<void> {
    if (host !== null) await hostWithin(this.#options.clock, HOST_MS.close, 'end', host.close());
  }

  /** A server that takes nothing for too long is gone: what it was given before is not answered either. */
  async #handOver(host: HostSession, message: JsonRpcMessage, canPoll: boolean): Promise<void> {
    const instance = this.#instance;
    try {
      await hostWithin(this.#options.clock, HOST_MS.handOver, 'take a message', host.deliver(message, { canPoll }));
    } catch (error) {
      if (instance !== null && error instanceof HostError && error.code === 'HOST_TIMEOUT' && this.#over(instance)) {
        this.#options.onGone(this, error.message);
        this.#close(instance).catch(() => undefined);
      }
      throw error;
    }
  }

  /** `false` if the instance was over already. */
  #over(instance: Instance): boolean {
    if (instance.isOver) return false;
    instance.isOver = true;
    instance.isReady = false;
    if (this.#instance === instance) this.#instance = null;
    instance.abort.abort();
    this.#options.freeSeat();
    return true;
  }

  async #open(): Promise<HostSession> {
    const { host, takeSeat, freeSeat } = this.#options;
    if (!takeSeat()) throw new NoSeatError('this worker hosts as many server instances as it may');
    if (this.ended) {
      freeSeat();
      throw new HostError('HOST_GONE', 'the session has ended');
    }
    const number = ++this.instanceNumber;
    const instance: Instance = {
      number,
      abort: new AbortController(),
      asked: new Map(),
      host: null,
      isReady: false,
      isOver: false,
    };
    this.#instance = instance;
    const context = { sessionId: this.key, principal: this.principal, signal: instance.abort.signal };
    try {
      const opening = host.open(context, this.#callbacks(instance));
      instance.host = await hostWithin(this.#options.clock, HOST_MS.open, 'start', opening, (late) => {
        late.close().catch(() => undefined);
      });
      checkNotOver(instance);
      if (this.record !== null) await this.#restore(instance, instance.host, this.record);
      checkNotOver(instance);
      instance.isReady = true;
      this.#options.onReady(this);
      return instance.host;
    } catch (error) {
      this.#over(instance);
      // Whatever closing it meets, the reason why it did not open is the one to tell.
      await this.#close(instance).catch(() => undefined);
      throw error;
    }
  }

  #callbacks(instance: Instance): HostCallbacks {
    return {
      onMessage: (message, related) => {
        if (instance.isOver || takeAsked(instance, message)) return Promise.resolve();
        return this.#options.onMessage(this, message, related);
      },
      onCloseStream: (related) => {
        if (!instance.isOver) this.#options.onCloseStream(this, related);
      },
      onGone: (...what) => {
        if (this.#over(instance)) this.#options.onGone(this, ...what);
      },
    };
  }

  /** `initialize`, `initialized`, log level and subscriptions again, on a fresh server; its answers are swallowed. */
  async #restore(instance: Instance, host: HostSession, record: SessionRecord): Promise<void> {
    const { result } = await this.#ask(instance, host, record.initialize.method, record.initialize.params);
    if (typeof result === 'object' && result !== null && 'capabilities' in result)
      this.capabilities = result.capabilities as Record<string, unknown>;
    if (!record.initialized) return;
    await host.deliver({ jsonrpc: '2.0', method: 'notifications/initialized' }, { canPoll: false });
    if (record.logLevel !== null) await this.#ask(instance, host, 'logging/setLevel', { level: record.logLevel });
    for (const uri of record.subscriptions) await this.#ask(instance, host, 'resources/subscribe', { uri });
  }

  async #ask(
    instance: Instance,
    host: HostSession,
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
  ): Promise<JsonRpcResponse> {
    const id = `${INTERNAL_PREFIX}${instance.number}-${++this.#askCount}`;
    const limit = deadline(this.#options.clock, RESTORE_DEADLINE_MS, instance.abort.signal);
    try {
      const answered = new Promise<JsonRpcResponse>((resolve, reject) => {
        instance.asked.set(id, resolve);
        const fail = (): void => {
          reject(
            limit.expired()
              ? new HostError('HOST_TIMEOUT', `the server did not answer ${method} while its session was restored`)
              : new HostError('HOST_GONE', 'the server ended while its session was restored'),
          );
        };
        limit.signal.addEventListener('abort', fail, { once: true });
        if (limit.signal.aborted) fail();
      });
      answered.catch(() => undefined);
      await host.deliver(
        { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) },
        { canPoll: false },
      );
      const response = await answered;
      if (response.error !== undefined)
        throw new RestoreRefusedError(
          `the server refused ${method} while its session was restored: ${response.error.message}`,
        );
      return response;
    } finally {
      instance.asked.delete(id);
      limit.dispose();
    }
  }
}

function checkNotOver(instance: Instance): void {
  if (instance.isOver) throw new HostError('HOST_GONE', 'the server ended while its session was opened');
}

/** Whether it answers what this worker asked itself. */
function takeAsked(instance: Instance, message: JsonRpcMessage): boolean {
  if ('method' in message || typeof message.id !== 'string' || !message.id.startsWith(INTERNAL_PREFIX)) return false;
  instance.asked.get(message.id)?.(message);
  return true;
}
