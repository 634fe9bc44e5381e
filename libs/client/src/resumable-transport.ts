/**
 * The transport: what an SDK client connects to. Holds the session that is in force, replaces it when it is lost, and
 * keeps its place.
 */
import { classifyMessage } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest } from '@throughline/protocol';
import { failedCall, TransportError } from './client-errors.ts';
import type { ClientError, ResumptionRejected } from './client-errors.ts';
import { readOptions } from './options.ts';
import type { LostSession, ResumableTransportOptions, Settings } from './options.ts';
import { PlaceKeeper } from './place-keeper.ts';
import { reconnectDelay } from './reconnect-delay.ts';
import { missedChanges, restoreSession } from './restore-session.ts';
import type { MessageOrigin } from './resumable-stream.ts';
import { formatSession, parseSession } from './saved-session.ts';
import type { SavedSession } from './saved-session.ts';
import { Session } from './session.ts';
import type { PendingCall, SessionOwner } from './session.ts';
import { pause } from './wait.ts';

/** A JSON-RPC message, as both SDKs type theirs. */
export interface WireMessage {
  readonly jsonrpc: '2.0';
  readonly id?: JsonRpcId | null | undefined;
  readonly method?: string | undefined;
  readonly params?: object | undefined;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** What the SDKs give with a message. */
export interface SendOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly resumptionToken?: string | undefined;
}

/** A session that lasted this long was no part of a series of failures. */
const STEADY_MS = 60_000;

/**
 * `new Client(…).connect(new ResumableTransport(url))`, with the clients of the official SDK v1 and v2.
 *
 * Every call ends with a result or an error. Errors of this transport have `data.type` (`TransportError` or
 * `ResumptionRejected`), `data.code` and `data.mayHaveRun`. SPEC: CLIENT-BOUND, CLIENT-ERRORS.
 */
export class ResumableTransport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  /** An event counts as processed when this has returned, or its promise has settled. SPEC: CLIENT-PROCESSED. */
  onmessage?: ((message: WireMessage) => void) | undefined;

  readonly #settings: Settings;
  readonly #keeper: PlaceKeeper | null;
  readonly #owner: SessionOwner;
  readonly #closed = new AbortController();
  #isStarted = false;
  #versions: readonly string[] | null = null;
  #saved: SavedSession | null = null;
  #session: Session | null = null;
  #isContinued = false;
  /** Lost, and not replaced so far. */
  #lost: Session | null = null;
  #candidate: Session | null = null;
  #restoring: Promise<void> | null = null;
  #losses = 0;
  #sinceMs = performance.now();

  /** Throws a `TypeError` for a URL or an option that cannot be. */
  constructor(url: string | URL, options: ResumableTransportOptions = {}) {
    this.#settings = readOptions(url, options);
    const report = (error: Error): void => {
      this.#report(error);
    };
    this.#keeper = options.store === undefined ? null : new PlaceKeeper(options.store, this.#settings.storeKey, report);
    this.#owner = {
      settings: this.#settings,
      deliver: (message, origin) => this.#deliver(message, origin),
      reject: (session, error) => {
        this.#reject(session, error);
      },
      orphan: (method, response) => {
        this.#tell(() => options.onOrphanAnswer?.({ method, response }));
      },
      unproven: ({ checkpoint: { kind } }, eventId, facts) => {
        this.#tell(() => options.onUnproven?.({ stream: kind, eventId, facts }));
      },
      report,
      changed: (session) => {
        if (session === this.#session) this.#saveSoon();
      },
    };
  }

  /** Of the session in force; `undefined` before there is one. */
  get sessionId(): string | undefined {
    return this.#session?.sessionId ?? undefined;
  }

  /** Called by the SDK. Reads the kept place, if there is a store. */
  async start(): Promise<void> {
    if (this.#isStarted) throw new TypeError('this transport was started before; make a new one for each connection');
    this.#isStarted = true;
    const text = await this.#keeper?.load();
    if (text === undefined) return;
    try {
      this.#saved = parseSession(text);
    } catch (error) {
      this.#report(error as Error);
    }
  }

  /**
   * Sends a message. A request is answered over `onmessage`, also when it fails. Rejects for other messages with a
   * `TransportError` (`CLOSED`, or what kept it from being taken) or `ResumptionRejected`.
   */
  async send(message: WireMessage, { headers, resumptionToken }: SendOptions = {}): Promise<void> {
    const classified = classifyMessage(message);
    if ('fault' in classified) throw new TypeError(classified.fault);
    if (resumptionToken !== undefined)
      throw new TypeError(
        'option resumptionToken is not taken: this transport keeps its place by itself (option store)',
      );
    if (classified.kind === 'request') {
      await this.#sendRequest(classified.message, headers);
      return;
    }
    // An answer belongs to the session that asked; the next one has not asked.
    if (classified.kind === 'response') {
      await this.#session?.post(classified.message);
      return;
    }
    const session = await this.#current();
    if (session === null) throw this.#noSession();
    if (classified.message.method === 'notifications/initialized') await this.#initialized(session, classified.message);
    else await session.post(classified.message);
  }

  /** Ends all streams; the session lives on at the server, and the kept place stays. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#saveSoon();
    await this.#keeper?.flush();
    this.#closed.abort();
    for (const session of [this.#session, this.#candidate]) if (session !== null) this.#giveUp(session);
    this.onclose?.();
  }

  /** Ends the session at the server (DELETE) and forgets the kept place. Rejects with a `TransportError`. */
  async terminateSession(): Promise<void> {
    const session = this.#session;
    await session?.terminate();
    this.#session = null;
    if (session !== null) this.#giveUp(session);
    this.#keeper?.saveSoon(() => null);
    await this.#keeper?.flush();
  }

  /** With `reinitialize: 'manual'`: begins a new session in place of a lost one. Rejects with a `TransportError`. */
  async reinitialize(): Promise<void> {
    if (this.#lost === null) {
      await this.#restoring;
      return;
    }
    await this.#restore(this.#lost, []);
    if (this.#session === null) throw this.#noSession();
  }

  setProtocolVersion(version: string): void {
    this.#session?.setProtocolVersion(version);
  }

  /** Called by SDK v2: a server that has changed is only taken if it speaks one of these. */
  setSupportedProtocolVersions(versions: string[]): void {
    this.#versions = versions;
  }

  async #sendRequest(message: JsonRpcRequest, headers?: Readonly<Record<string, string>>): Promise<void> {
    if (message.method === 'initialize') {
      await this.#initialize(message, headers);
      return;
    }
    const session = await this.#current();
    if (session === null) await this.#deliver(failedCall(message.id, this.#noSession(), false), null);
    else session.call(message, headers);
  }

  async #initialize(message: JsonRpcRequest, headers?: Readonly<Record<string, string>>): Promise<void> {
    if (this.#closed.signal.aborted) throw this.#noSession();
    const saved = this.#saved;
    this.#saved = null;
    if (this.#session !== null) this.#giveUp(this.#session);
    if (saved !== null && isSame(saved.initialize, message.params ?? {})) {
      this.#isContinued = true;
      this.#session = new Session(this.#owner, 0, message, saved);
      // Before anything is sent under the marks of this process: the next one must not use them again.
      this.#saveSoon();
      await this.#keeper?.flush();
      await this.#deliver({ jsonrpc: '2.0', id: message.id, result: saved.result }, null);
      return;
    }
    this.#isContinued = false;
    this.#session = new Session(this.#owner, 0, message);
    this.#session.call(message, headers);
  }

  async #initialized(session: Session, message: JsonRpcNotification): Promise<void> {
    if (this.#isContinued) {
      await session.goOn();
      return;
    }
    await session.post(message);
    session.listen();
  }

  /** The session in force; waits for one that is being begun. `null`: there is none. */
  async #current(): Promise<Session | null> {
    if (this.#restoring === null && this.#lost !== null && this.#settings.reinitialize === 'auto')
      this.#restore(this.#lost, []).catch(() => undefined);
    await this.#restoring;
    return this.#closed.signal.aborted ? null : this.#session;
  }

  #noSession(): TransportError {
    const isClosed = this.#closed.signal.aborted;
    return new TransportError('CLOSED', isClosed ? 'The transport is closed' : 'There is no session');
  }

  /** The session is over: everything pending in it fails first, then the application is told, then a new one begins. */
  #reject(session: Session, error: ResumptionRejected): void {
    if (session.isOver || this.#closed.signal.aborted) return;
    const isAuto = this.#settings.reinitialize === 'auto' && session === this.#session && session.result !== null;
    const { calls, serverRequests } = session.end();
    // What the server has not taken can be asked in the next session, unseen by its caller.
    const untaken = isAuto ? calls.filter((call) => !call.stream.mayHaveRun && call.settle === undefined) : [];
    const failed = calls.filter((call) => !untaken.includes(call));
    for (const call of failed) this.#failCall(call, error);
    for (const requestId of serverRequests) void this.#deliver(cancelled(requestId), null);
    if (session !== this.#session) {
      this.#report(error);
      return;
    }
    this.#session = null;
    this.#keeper?.saveSoon(() => null);
    this.#report(error);
    const lost: LostSession = {
      rejection: error,
      sessionId: session.sessionId,
      failedCalls: failed.flatMap(({ id, message: { method }, stream: { mayHaveRun } }) =>
        id === null ? [] : [{ id, method, mayHaveRun }],
      ),
      cancelledRequests: serverRequests,
    };
    this.#tell(() => this.#settings.user.onSessionLost?.(lost));
    if (session.result === null) return;
    this.#lost = session;
    if (isAuto) this.#restore(session, untaken).catch(() => undefined);
  }

  /** Ends a session that nobody wants any more: whoever waits in it is told. */
  #giveUp(session: Session): void {
    for (const call of session.end().calls)
      if (call.id !== null || call.settle !== undefined) this.#failCall(call, this.#noSession());
  }

  #failCall({ id, wireId, message, stream, settle }: PendingCall, error: ClientError): void {
    const response = failedCall(id ?? wireId, error, stream.mayHaveRun);
    if (settle !== undefined) settle(response);
    else if (id === null) this.#owner.orphan(message.method, response);
    else void this.#deliver(response, null);
  }

  #restore(lost: Session, untaken: readonly PendingCall[]): Promise<void> {
    this.#restoring ??= this.#beginAnew(lost, untaken).finally(() => {
      this.#restoring = null;
      this.#candidate = null;
    });
    return this.#restoring;
  }

  async #beginAnew(lost: Session, untaken: readonly PendingCall[]): Promise<void> {
    this.#losses = performance.now() - this.#sinceMs > STEADY_MS ? 0 : this.#losses;
    try {
      await this.#waitAfterLosses();
      const [session, restored] = await restoreSession({
        owner: this.#owner,
        lost,
        versions: this.#versions,
        onCandidate: (candidate) => {
          this.#candidate = candidate;
        },
      });
      if (this.#closed.signal.aborted) return;
      this.#sinceMs = performance.now();
      this.#lost = null;
      this.#session = session;
      session.listen();
      this.#saveSoon();
      this.#tell(() => this.#settings.user.onSessionRestored?.(restored));
      for (const change of missedChanges(session)) void this.#deliver({ jsonrpc: '2.0', ...change }, null);
      for (const { message, headers } of untaken) session.call(message, headers);
    } catch (error) {
      const cause =
        error instanceof TransportError ? error : new TransportError('NO_ANSWER', 'No new session', { cause: error });
      if (this.#candidate !== null) this.#giveUp(this.#candidate);
      this.#report(cause);
      for (const call of untaken) this.#failCall(call, cause);
    }
  }

  /** A server whose every session is lost at once is not asked for one after the other. */
  async #waitAfterLosses(): Promise<void> {
    const attempt = this.#losses++;
    if (attempt === 0) return;
    const { initialDelayMs, maxDelayMs, random } = this.#settings;
    await pause(
      reconnectDelay({ attempt, retryMs: null, initialDelayMs, maxDelayMs, unit: random() }),
      this.#closed.signal,
    );
  }

  async #deliver(message: JsonRpcMessage, origin: MessageOrigin | null): Promise<void> {
    if (this.#closed.signal.aborted) return;
    if (origin !== null) {
      const { eventId, isReplayed, stream } = origin;
      this.#tell(() => this.#settings.user.onEvent?.({ stream: stream.checkpoint.kind, eventId, message, isReplayed }));
    }
    try {
      // The SDKs return nothing; a handler that returns a promise is waited for.
      await (this.onmessage?.(message) as unknown);
    } catch (error) {
      this.#report(error as Error);
    }
  }

  #report(error: Error): void {
    if (!this.#closed.signal.aborted) this.#tell(() => this.onerror?.(error));
  }

  /** What the application throws while it is told something changes nothing here. */
  #tell(call: () => void): void {
    try {
      call();
    } catch {
      // There is nobody left to tell.
    }
  }

  #saveSoon(): void {
    const session = this.#session;
    // Without a session nothing is known that would be better than what is kept.
    if (session === null) return;
    this.#keeper?.saveSoon(() => {
      const snapshot = session.snapshot();
      return snapshot === null ? null : formatSession(snapshot);
    });
  }
}

function cancelled(requestId: JsonRpcId): JsonRpcNotification {
  const params = { requestId, reason: 'The session in which this was asked is over' };
  return { jsonrpc: '2.0', method: 'notifications/cancelled', params };
}

/** Whether two values are the same JSON, whatever the order of their fields. */
function isSame(a: unknown, b: unknown): boolean {
  return sorted(a) === sorted(b);
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
