/**
 * One MCP session as its client sees it: the calls that wait, the requests of the server that are open, the streams, and
 * what must be asked for again if it is lost. It dies once, and whatever was pending then is handed back.
 * SPEC: CLIENT-PENDING, CLIENT-WRONG-STREAM, CLIENT-IDS.
 */
import { classifyText, errorResponse } from '@throughline/protocol';
import type {
  JsonRpcId,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
} from '@throughline/protocol';
import { failedCall, ResumptionRejected, TransportError } from './client-errors.ts';
import { discard, exchange, statusError } from './http-exchange.ts';
import type { ExchangeRequest } from './http-exchange.ts';
import { isTemporary } from './judge-answer.ts';
import type { Settings } from './options.ts';
import { readRefusal } from './read-refusal.ts';
import { reconnectDelay } from './reconnect-delay.ts';
import { isWithoutEffects } from './repeatable-methods.ts';
import { ResumableStream } from './resumable-stream.ts';
import type { HandlingOutcome, MessageOrigin, StreamEnd, StreamHost, StreamIdentity } from './resumable-stream.ts';
import type { Params, SavedSession } from './saved-session.ts';
import { newStream } from './stream-checkpoint.ts';
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import { reject } from './verdict.ts';
import type { Fact, Numbering, Rejected } from './verdict.ts';
import { pause } from './wait.ts';
import { appId, idKey, progressToken, wireId, wireRequest } from './wire-ids.ts';

export interface SessionOwner {
  readonly settings: Settings;
  /** Hands a message to the application; resolves when its handler has returned. Never rejects. */
  deliver(message: JsonRpcMessage, origin: MessageOrigin | null): Promise<void>;
  /** The session cannot go on. */
  reject(session: Session, error: ResumptionRejected): void;
  orphan(method: string, response: JsonRpcResponse): void;
  unproven(stream: ResumableStream, eventId: string | null, facts: readonly Fact[]): void;
  report(error: Error): void;
  changed(session: Session): void;
}

export interface PendingCall {
  /** The application's id; `null` of a call of a former process. */
  readonly id: JsonRpcId | null;
  readonly wireId: JsonRpcId;
  /** As the application sent it. */
  readonly message: JsonRpcRequest;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly stream: ResumableStream;
  /** Of a call that the transport makes itself. */
  readonly settle?: ((response: JsonRpcResponse) => void) | undefined;
}

/** What was pending when a session ended. */
export interface Remains {
  readonly calls: readonly PendingCall[];
  /** As the application knows them. */
  readonly serverRequests: readonly JsonRpcId[];
}

/** Requests of a server that may be open at once; more are answered with an error. */
const MAX_SERVER_REQUESTS = 1000;

interface ServerRequest {
  readonly message: JsonRpcRequest;
}

export class Session {
  readonly number: number;
  readonly process: number;
  readonly initialize: JsonRpcRequest;
  readonly #owner: SessionOwner;
  readonly #over = new AbortController();
  readonly #calls = new Map<string, PendingCall>();
  readonly #tokens = new Map<string, JsonRpcId>();
  readonly #serverRequests = new Map<string, ServerRequest>();
  readonly #subscriptions = new Map<string, Params>();
  #names: StreamIdentity = { sessionId: null, epoch: null };
  #numbering: Numbering | null = null;
  #hasKeepAlives = false;
  #protocolVersion: string | null = null;
  #result: Params | null = null;
  #logLevel: Params | null = null;
  #standalone: ResumableStream | null = null;
  #relistens = 0;
  #saved: SavedSession | null = null;

  /** @param number of the session among those of its transport, from 0. */
  constructor(owner: SessionOwner, number: number, initialize: JsonRpcRequest, saved: SavedSession | null = null) {
    this.#owner = owner;
    this.number = number;
    this.initialize = initialize;
    this.process = saved === null ? 0 : saved.process + 1;
    if (saved === null) return;
    this.#saved = saved;
    this.#names = { sessionId: saved.sessionId, epoch: saved.epoch };
    this.#numbering = saved.numbering;
    this.#protocolVersion = saved.protocolVersion;
    this.#result = saved.result;
    this.#logLevel = saved.logLevel;
    for (const params of saved.subscriptions) this.#subscriptions.set(String(params['uri']), params);
  }

  get sessionId(): string | null {
    return this.#names.sessionId;
  }

  get result(): Params | null {
    return this.#result;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** What must be asked for again in a session that takes the place of this one. */
  get subscriptions(): readonly Pick<JsonRpcRequest, 'method' | 'params'>[] {
    const all = [...this.#subscriptions.values()].map((params) => ({ method: 'resources/subscribe', params }));
    return this.#logLevel === null ? all : [{ method: 'logging/setLevel', params: this.#logLevel }, ...all];
  }

  setProtocolVersion(version: string): void {
    this.#protocolVersion = version;
  }

  /** Sends a request; its answer is delivered, or given to `settle`. */
  call(
    message: JsonRpcRequest,
    headers?: Readonly<Record<string, string>>,
    settle?: (response: JsonRpcResponse) => void,
  ): void {
    const request = settle === undefined ? wireRequest(message, this.process) : message;
    const token = progressToken(message);
    if (token !== undefined) this.#tokens.set(idKey(wireId(token, this.process)), token);
    const host = this.#host();
    const posting = {
      body: JSON.stringify(request),
      headers,
      // Throughline runs a request once, however often it is posted with the same id.
      isRepeatable: () => this.#numbering === 'chained' || isWithoutEffects(message.method),
    };
    const stream = new ResumableStream(host, newStream('request', request.id, this.#names), posting);
    this.#wait({ id: message.id, wireId: request.id, message, headers, stream, settle });
  }

  /** The answer to a call that the transport makes itself. Never rejects. */
  ask(message: JsonRpcRequest): Promise<JsonRpcResponse> {
    return new Promise((resolve) => {
      this.call(message, undefined, resolve);
    });
  }

  #wait(call: PendingCall): void {
    this.#calls.set(idKey(call.wireId), call);
    void call.stream.run().then((end) => this.#callEnded(call, end));
  }

  /**
   * Sends a message that has no answer. Rejects with a `TransportError` when the server was out of reach for too long or
   * refused it, with `ResumptionRejected` when the session is gone.
   */
  async post(message: JsonRpcNotification | JsonRpcResponse): Promise<void> {
    const wire = this.#outbound(message);
    if (wire === null) return;
    const { settings } = this.#owner;
    const body = JSON.stringify(wire);
    const began = performance.now();
    for (let attempt = 0; ; attempt++) {
      const error = await this.#postOnce(body);
      if (error === null) return;
      const isFinal = error.status !== undefined && !isTemporary(error.status);
      if (isFinal || this.isOver || performance.now() - began > settings.giveUpMs) throw error;
      const { initialDelayMs, maxDelayMs } = settings;
      const { retryAfterMs } = error;
      const unit = settings.random();
      await pause(
        reconnectDelay({ attempt, retryMs: null, retryAfterMs, initialDelayMs, maxDelayMs, unit }),
        this.#over.signal,
      );
    }
  }

  /** `null`: it was taken. */
  async #postOnce(body: string): Promise<TransportError | null> {
    const { connectTimeoutMs: timeoutMs } = this.#owner.settings;
    let answer: Response;
    try {
      answer = await this.#request({ method: 'POST', body, timeoutMs, signal: this.#over.signal });
    } catch (error) {
      if (error instanceof TransportError) return error;
      throw error;
    }
    discard(answer);
    if (answer.ok) return null;
    if ((answer.status === 404 || answer.status === 410) && this.sessionId !== null) {
      const gone = this.#gone(reject('session-invalid', `the server answered ${answer.status}`));
      this.#owner.reject(this, gone);
      throw gone;
    }
    return statusError(answer);
  }

  /** As it goes out; `null` if it concerns nothing of this session any more. */
  #outbound(message: JsonRpcNotification | JsonRpcResponse): JsonRpcNotification | JsonRpcResponse | null {
    if (!('method' in message)) {
      const open = message.id === null ? undefined : this.#serverRequests.get(idKey(message.id));
      if (open === undefined || message.id === null) return null;
      this.#serverRequests.delete(idKey(message.id));
      this.#owner.changed(this);
      return { ...message, id: open.message.id };
    }
    const cancelled = message.params?.['requestId'];
    if (message.method !== 'notifications/cancelled') return message;
    const id = wireId(cancelled as JsonRpcId, this.process);
    // Whoever cancels does not wait: nothing more may be delivered for it.
    const call = this.#calls.get(idKey(id));
    call?.stream.stop();
    if (call !== undefined) this.#forget(call);
    // MCP forbids to cancel it; before its answer there is no session to cancel anything in.
    if (call?.message.method === 'initialize') return null;
    return { ...message, params: { ...message.params, requestId: id } };
  }

  /** Opens the standalone stream. */
  listen(checkpoint: StreamCheckpoint | null = null): void {
    const stream = new ResumableStream(this.#host(), checkpoint ?? newStream('standalone', null, this.#names), null);
    this.#standalone = stream;
    void stream.run().then((end) => {
      if (this.isOver || end.kind === 'stopped') return;
      if (end.kind === 'rejected') this.#owner.reject(this, end.error);
      else if (stream.checkpoint.lastEventId !== null) {
        // The server holds nothing at that cursor any more: what it said since is not known.
        this.#owner.unproven(stream, null, ['sequence']);
        void this.#listenLater();
      }
    });
  }

  async #listenLater(): Promise<void> {
    const { initialDelayMs, maxDelayMs, random } = this.#owner.settings;
    const attempt = this.#relistens++;
    await pause(
      reconnectDelay({ attempt, retryMs: null, initialDelayMs, maxDelayMs, unit: random() }),
      this.#over.signal,
    );
    if (!this.isOver) this.listen();
  }

  /** Goes on where the former process stopped: what the server asked for is asked again, streams are resumed. */
  async goOn(): Promise<void> {
    const saved = this.#saved;
    if (saved === null) return;
    this.#saved = null;
    for (const { id, method, stream } of saved.calls) {
      const message = { jsonrpc: '2.0', id, method } as const;
      const resumed = new ResumableStream(this.#host(), stream, null);
      if (stream.lastEventId !== null) this.#wait({ id: null, wireId: id, message, stream: resumed });
    }
    this.listen(saved.standalone);
    for (const message of saved.serverRequests) await this.#deliverRequest(message, null);
  }

  /** Ends the session on this side; gives back what was pending. Nothing is delivered for it any more. */
  end(): Remains {
    this.#over.abort();
    this.#standalone?.stop();
    const calls = [...this.#calls.values()];
    for (const { stream } of calls) stream.stop();
    const serverRequests = [...this.#serverRequests.values()].map(({ message }) => appId(message.id, this.number));
    this.#calls.clear();
    this.#serverRequests.clear();
    return { calls, serverRequests };
  }

  /** DELETE of the session. Rejects with a `TransportError`. */
  async terminate(): Promise<void> {
    const { connectTimeoutMs: timeoutMs } = this.#owner.settings;
    const answer = await this.#request({ method: 'DELETE', timeoutMs, signal: this.#over.signal });
    discard(answer);
    if (!answer.ok && answer.status !== 404 && answer.status !== 405) throw statusError(answer);
  }

  /** What a new process needs; `null` before there is a session. */
  snapshot(): SavedSession | null {
    if (this.#result === null || this.#protocolVersion === null || this.isOver) return null;
    const saved = this.#saved;
    return {
      ...this.#names,
      numbering: this.#numbering,
      protocolVersion: this.#protocolVersion,
      process: this.process,
      initialize: this.initialize.params ?? {},
      result: this.#result,
      logLevel: this.#logLevel,
      subscriptions: [...this.#subscriptions.values()],
      standalone: this.#standalone?.checkpoint ?? saved?.standalone ?? null,
      calls: [
        ...(saved?.calls ?? []),
        ...[...this.#calls.values()]
          .filter(({ settle }) => settle === undefined)
          .map(({ wireId: id, message, stream }) => ({ id, method: message.method, stream: stream.checkpoint })),
      ],
      serverRequests: [
        ...(saved?.serverRequests ?? []),
        ...[...this.#serverRequests.values()].map(({ message }) => message),
      ],
    };
  }

  #gone({ reason, detail }: Rejected): ResumptionRejected {
    return new ResumptionRejected(reason, detail, { sessionId: this.sessionId, lastEventId: null });
  }

  #host(): StreamHost {
    const owner = this.#owner;
    return {
      settings: owner.settings,
      numbering: () => this.#numbering,
      fixNumbering: (numbering) => {
        this.#numbering = numbering;
      },
      sendsKeepAlives: () => this.#hasKeepAlives || this.#numbering === 'chained',
      keepAliveSeen: () => {
        this.#hasKeepAlives = true;
      },
      request: (request) => this.#request(request),
      nameSession: ({ sessionId, epoch }) => {
        // Only the answer to `initialize` gives a session its name.
        this.#names = {
          sessionId: this.#result === null ? sessionId : this.#names.sessionId,
          epoch: this.#names.epoch ?? epoch,
        };
        return this.#names;
      },
      handle: (data, origin) => this.#handle(data, origin),
      progressed: () => {
        owner.changed(this);
      },
      unproven: (stream, eventId, facts) => {
        owner.unproven(stream, eventId, facts);
      },
      report: (error) => {
        if (!this.isOver) owner.report(error);
      },
    };
  }

  #request(request: Omit<ExchangeRequest, 'sessionId' | 'protocolVersion'>): Promise<Response> {
    return exchange(this.#owner.settings, {
      ...request,
      sessionId: this.sessionId,
      protocolVersion: this.#protocolVersion,
    });
  }

  async #callEnded(call: PendingCall, end: StreamEnd): Promise<void> {
    if (this.isOver || this.#calls.get(idKey(call.wireId)) !== call) return;
    switch (end.kind) {
      case 'answered':
      case 'stopped':
        return;
      case 'rejected':
        this.#owner.reject(this, end.error);
        return;
      case 'finished':
        await this.#fail(call, new TransportError('NO_ANSWER', 'The server ended the stream of the call'), end);
        return;
      case 'failed':
        await this.#fail(call, end.error, end);
        return;
      case 'refused':
        await this.#settle(call, refusal(call, end), null);
        return;
    }
  }

  async #fail(
    call: PendingCall,
    error: TransportError,
    { mayHaveRun }: { readonly mayHaveRun: boolean },
  ): Promise<void> {
    await this.#settle(call, failedCall(call.wireId, error, mayHaveRun), null);
  }

  async #handle(data: string, origin: MessageOrigin): Promise<HandlingOutcome> {
    const classified = classifyText(data);
    if ('fault' in classified) {
      this.#owner.report(new TransportError('NOT_MCP', `The server sent no JSON-RPC message: ${classified.fault}`));
      return 'go-on';
    }
    switch (classified.kind) {
      case 'response':
        return await this.#handleResponse(classified.message, origin);
      case 'request':
        await this.#deliverRequest(classified.message, origin);
        return 'go-on';
      case 'notification':
        await this.#deliverNotification(classified.message, origin);
        return 'go-on';
    }
  }

  async #handleResponse(response: JsonRpcResponse, origin: MessageOrigin): Promise<HandlingOutcome> {
    const own = [...this.#calls.values()].find(({ stream }) => stream === origin.stream);
    const call = response.id === null ? own : this.#calls.get(idKey(response.id));
    if (call === undefined) return 'go-on';
    if (call !== own) {
      // MCP forbids it there, so something speaks against it whatever the policy.
      const isForbidden = origin.stream === this.#standalone;
      if (isForbidden || this.#numbering === 'chained' || this.#owner.settings.policy === 'strict')
        return reject('foreign-event', `the answer to call ${idKey(call.wireId)} came on another stream`);
      this.#owner.unproven(origin.stream, origin.eventId, ['sequence']);
      call.stream.stop();
    }
    await this.#settle(call, response, origin);
    const refused = response.error === undefined ? null : readRefusal(JSON.stringify(response));
    if (refused !== null) this.#owner.reject(this, this.#gone(refused));
    return call === own ? 'answered' : 'go-on';
  }

  async #settle(call: PendingCall, response: JsonRpcResponse, origin: MessageOrigin | null): Promise<void> {
    if (response.error === undefined) this.#remember(call.message, response.result);
    this.#forget(call);
    if (call.settle !== undefined) call.settle(response);
    else if (call.id === null) this.#owner.orphan(call.message.method, response);
    else await this.#owner.deliver({ ...response, id: call.id }, origin);
  }

  #forget({ message, wireId: id }: PendingCall): void {
    this.#calls.delete(idKey(id));
    const token = progressToken(message);
    if (token !== undefined) this.#tokens.delete(idKey(wireId(token, this.process)));
    this.#owner.changed(this);
  }

  /** What must be asked for again in a new session. */
  #remember({ method, params = {} }: JsonRpcRequest, result: unknown): void {
    const uri = String(params['uri']);
    if (method === 'initialize' && typeof result === 'object' && result !== null) {
      this.#result = result as Params;
      const version = this.#result['protocolVersion'];
      if (typeof version === 'string') this.#protocolVersion = version;
    } else if (method === 'logging/setLevel') this.#logLevel = params;
    else if (method === 'resources/subscribe') this.#subscriptions.set(uri, params);
    else if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri);
  }

  async #deliverRequest(message: JsonRpcRequest, origin: MessageOrigin | null): Promise<void> {
    const id = appId(message.id, this.number);
    this.#serverRequests.set(idKey(id), { message });
    if (this.#serverRequests.size > MAX_SERVER_REQUESTS) {
      const error = { code: -32000, message: 'Too many requests are open', data: {} };
      this.post(errorResponse(id, error)).catch((cause: unknown) => this.#owner.report(cause as Error));
      return;
    }
    await this.#owner.deliver({ ...message, id }, origin);
  }

  async #deliverNotification(message: JsonRpcNotification, origin: MessageOrigin): Promise<void> {
    const { method, params = {} } = message;
    if (method === 'notifications/cancelled') {
      const id = appId(params['requestId'] as JsonRpcId, this.number);
      this.#serverRequests.delete(idKey(id));
      await this.#owner.deliver({ ...message, params: { ...params, requestId: id } }, origin);
    } else if (method === 'notifications/progress' && this.process > 0) {
      // A former process may have used the same token for another call.
      const token = this.#tokens.get(idKey(params['progressToken'] as JsonRpcId));
      if (token === undefined) return;
      await this.#owner.deliver({ ...message, params: { ...params, progressToken: token } }, origin);
    } else await this.#owner.deliver(message, origin);
  }
}

/** The error that the body of the refusal holds, or one of our own. */
function refusal(call: PendingCall, end: Extract<StreamEnd, { kind: 'refused' }>): JsonRpcResponse {
  const own = failedCall(call.wireId, end.error, end.mayHaveRun);
  const classified = classifyText(end.text);
  if ('fault' in classified || classified.kind !== 'response' || classified.message.error === undefined) return own;
  const { error } = classified.message;
  const data = typeof error.data === 'object' && error.data !== null ? error.data : { data: error.data };
  return { ...own, error: { ...error, data: { mayHaveRun: end.mayHaveRun, status: end.error.status, ...data } } };
}
