/**
 * One tenure: what an owner does between its claim and its release or loss. It takes in `inbound` in order, runs calls
 * at most once, and writes what happens to `events`. SPEC: WRK-*.
 */
import { decideTakeover } from '@throughline/history';
import type { RequestLedger, RequestState, Verdict } from '@throughline/history';
import {
  canPrime,
  classifyMessage,
  decodeText,
  readInboundRecord,
  streamOfRequest,
  wireError,
} from '@throughline/protocol';
import type {
  EventRecord,
  InboundRecord,
  JsonRpcErrorObject,
  JsonRpcId,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
  LogRecord,
  Offset,
  Partition,
  SessionEndReason,
  SessionRecord,
} from '@throughline/protocol';
import { SESSION_END_REASONS, STANDALONE } from '@throughline/protocol';
import type { SessionDirectory } from '@throughline/tail';
import type { EventsWatch } from '../claim/events-watch.ts';
import type { WorkerContext } from '../context.ts';
import { HostError } from '../host/host.ts';
import { PartitionWriter } from '../settle/partition-writer.ts';
import { parseWireRequestId, wireRequestId } from '../settle/server-request-ids.ts';
import { Settler } from '../settle/settler.ts';
import { copyStream } from './copy-stream.ts';
import { copyToDeadLetter } from './dead-letter.ts';
import { DedupeWindow } from './dedupe-window.ts';
import { HostedSession } from './hosted-session.ts';
import { hashBody, idKey } from './open-call.ts';
import type { BatchState, Mirror, OpenCall } from './open-call.ts';
import { recordAfter, SessionTable } from './session-table.ts';
import { effectsOf } from './tool-catalog.ts';

export interface TenureOptions {
  readonly context: WorkerContext;
  readonly partition: Partition;
  readonly epoch: string;
  readonly claim: Offset;
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  /** The claim is void, or an append has an unknown outcome: this tenure is over. Called once. */
  onLost(reason: string): void;
}

/** How an inbound record is met: it lay there before the claim (`takeover`), and the checkpoint may say that it is finished. */
export type Phase =
  | { readonly kind: 'live' }
  | {
      readonly kind: 'takeover';
      readonly checkpointed: boolean;
      readonly isOpen: boolean;
      readonly cancels: ReadonlySet<string>;
    };

const LAZY_START_MS = 5;

export class Tenure {
  readonly #options: TenureOptions;
  readonly #context: WorkerContext;
  readonly #writer: PartitionWriter;
  readonly #settler: Settler;
  readonly #sessions: SessionTable;
  readonly #dedupe: DedupeWindow;
  readonly #open = new Map<Offset, OpenCall>();
  readonly #batches = new Map<Offset, BatchState>();
  /** Living sessions that this owner may not rebuild. */
  readonly #terminating = new Set<string>();
  readonly #stop = new AbortController();
  readonly #idleWaiters = new Set<() => void>();
  readonly #pump = (): void => {
    this.#pumpAll();
  };
  #inbound: Offset = 0;
  #leaving = false;
  /** Whether something happened that the newest checkpoint does not say. */
  #dirty = true;

  constructor(options: TenureOptions) {
    const { context } = options;
    this.#options = options;
    this.#context = context;
    this.#writer = new PartitionWriter({
      log: context.log,
      clock: context.clock,
      partition: options.partition,
      deadlineMs: context.config.appendTimeoutMs,
      onLost: (reason) => {
        this.#lose(reason);
      },
    });
    this.#settler = new Settler(this.#writer, options.claim);
    this.#sessions = new SessionTable(context.clock);
    this.#dedupe = new DedupeWindow(context.clock);
    options.watch.listener = (event, verdict) => {
      this.#onEvent(event, verdict);
    };
    context.load.onFree.add(this.#pump);
  }

  /** Everything below was taken in. */
  inbound(): Offset {
    return this.#inbound;
  }

  /** Everything below `offset` was taken in, or needs not be. */
  startAt(offset: Offset): void {
    this.#inbound = Math.max(this.#inbound, offset);
  }

  /** Lowest open request, or the inbound position: what a consumer group may commit. */
  committable(): Offset {
    return Math.min(this.#inbound, ...[...this.#open.values()].map((call) => call.stream.at));
  }

  /** Meets the sessions that a former owner left: those that may not be rebuilt will end, once their calls were failed. */
  meetSessions(living: readonly (readonly [string, SessionRecord])[]): void {
    for (const [key, record] of living) {
      const policy = this.#context.config.servers[record.server]?.onOwnerLoss;
      if (policy !== 'restore') this.#terminating.add(key);
      const session = this.#makeSession(key, record.server, record.principal, record);
      if (session !== null) this.#sessions.add(session);
    }
  }

  /** Ends the sessions that could not be rebuilt. Their open calls have been failed by then. */
  async endTerminating(): Promise<void> {
    const keys = [...this.#terminating];
    await Promise.all(keys.map((key) => this.#endSession(key, 'owner-lost')));
    this.#terminating.clear();
  }

  /** Takes in the next inbound record. Synchronous: after it the record counts as taken in. */
  takeIn(record: LogRecord, phase: Phase): void {
    this.#inbound = Math.max(this.#inbound, record.offset + 1);
    this.#dirty = true;
    const inbound = readInboundRecord(record);
    if ('unreadable' in inbound) {
      this.#unreadable(record, inbound.unreadable);
      return;
    }
    const { body, key } = inbound;
    const isPast = phase.kind === 'takeover' && phase.checkpointed && !phase.isOpen;
    if (body.type === 'sessionEnd') {
      if (!isPast) void this.#endSession(key, endReason(record));
      return;
    }
    const classified = parseMessage(record);
    if (classified === null || 'fault' in classified) {
      this.#unreadable(record, classified === null ? 'the value is not JSON' : classified.fault);
      return;
    }
    const batch = body.batch === null ? null : this.#batchOf(inbound, body.batch, classified.kind === 'request');
    if (classified.kind === 'request') this.#takeRequest(inbound, classified.message, batch, phase);
    else if (!isPast) {
      if (classified.kind === 'notification') this.#takeNotification(key, classified.message, canPrime(body.version));
      else this.#takeResponse(key, classified.message, canPrime(body.version));
    }
    if (batch !== null) this.#closeBatch(inbound, batch);
  }

  // Requests.

  #takeRequest(inbound: InboundRecord, message: JsonRpcRequest, batch: BatchState | null, phase: Phase): void {
    const { record, key, offset } = inbound;
    if (inbound.body.type !== 'message') return;
    const { server, principal, version, after } = inbound.body;
    const stream = streamOfRequest(inbound);
    const catalog = this.#context.catalogs.get(server);
    const call: OpenCall = {
      at: offset,
      stream,
      key,
      message,
      bodyHash: hashBody(record.value ?? new Uint8Array(0)),
      after,
      batch,
      canPoll: canPrime(version),
      effects: effectsOf(message, catalog),
      strict: phase.kind === 'takeover' || effectsOf(message, catalog) !== 'none',
      attempt: 0,
      sent: false,
      state: 'queued',
      mirrors: [],
      cancelTimer: null,
      holdsPlace: false,
    };
    const id = idKey(message.id);
    let session = this.#sessions.get(key);
    if (session === undefined && message.method === 'initialize') {
      session = this.#makeSession(key, server, principal, null) ?? undefined;
      if (session !== undefined) this.#sessions.add(session);
    }
    if (phase.kind === 'takeover' && phase.checkpointed && !phase.isOpen) {
      // Finished under a former owner: known only so that its repetition does not run.
      if (batch !== null) batch.answered++;
      session?.remember(id, { at: offset, stream, bodyHash: call.bodyHash, after });
      return;
    }
    this.#dedupe.took(offset);
    this.#open.set(offset, call);
    if (this.#context.hosts.get(server) === undefined) {
      this.#settle(
        session,
        call,
        wireError('SERVER_FAILED', `The server ${JSON.stringify(server)} is not hosted here`),
      );
      return;
    }
    if (session === undefined || session.ended) {
      this.#settle(undefined, call, sessionEndedError());
      return;
    }
    session.lastActivityMs = this.#context.clock.monoMs();
    if (this.#isRepetition(session, call, id)) return;
    session.calls.set(id, call);
    if (phase.kind === 'takeover') this.#takeOver(session, call, id, phase.cancels);
    else this.#enqueue(session, call, 1);
  }

  /** A JSON-RPC id that the session used before: the same request gets the first one's outcome, another is refused. */
  #isRepetition(session: HostedSession, call: OpenCall, id: string): boolean {
    const first = session.calls.get(id);
    const settled = session.settled.get(id);
    const known = first ?? settled;
    if (known === undefined) return false;
    if (known.bodyHash !== call.bodyHash) {
      this.#settle(undefined, call, wireError('ID_REUSED', 'The request id was used before in this session'));
      return true;
    }
    const mirror: Mirror = { call, pending: [] };
    call.state = 'running';
    if (first !== undefined) first.mirrors.push(mirror);
    void this.#copyOutcome(mirror, known, first === undefined);
    return true;
  }

  async #copyOutcome(
    mirror: Mirror,
    of: { readonly stream: OpenCall['stream']; readonly after: Offset | null; readonly at: Offset },
    isSettled: boolean,
  ): Promise<void> {
    const { partition, watch } = this.#options;
    try {
      const aliasAt = await this.#settler.alias(mirror.call, of.stream);
      const copies = await copyStream({
        log: this.#context.log,
        partition,
        claims: () => watch.claims(),
        key: mirror.call.key,
        stream: of.stream,
        from: of.after ?? 0,
        below: aliasAt,
        answers: of.at,
        signal: this.#stop.signal,
      });
      for (const { json, answer } of copies) {
        if (answer) this.#answer(undefined, mirror.call, json);
        else this.#settler.send(mirror.call, json);
      }
      this.#settler.level(mirror);
      // The outcome is no longer held, or the first was cancelled.
      if (isSettled && !isDone(mirror.call))
        this.#settle(
          undefined,
          mirror.call,
          wireError('OWNER_LOST', 'The request ran before; its outcome is no longer held', { mayHaveRun: true }),
        );
      if (isDone(mirror.call)) this.#forget(mirror.call);
    } catch (error) {
      if (!this.#stop.signal.aborted)
        this.#settle(
          undefined,
          mirror.call,
          wireError('OWNER_LOST', 'The outcome of the first request could not be read', { mayHaveRun: true }),
        );
      this.#context.logger.warn('copying an outcome failed', {
        partition,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  #takeOver(session: HostedSession, call: OpenCall, id: string, cancels: ReadonlySet<string>): void {
    const state = stateOf(this.#options.watch.ledger(), call);
    call.sent = state?.sent ?? false;
    call.attempt = state?.attempt ?? 0;
    const action = decideTakeover({
      state,
      effects: call.effects,
      cancelled: call.message.method !== 'initialize' && cancels.has(`${call.key}\n${id}`),
      sessionLives: !this.#terminating.has(call.key),
    });
    switch (action.do) {
      case 'nothing':
        call.state = 'done';
        if (call.batch !== null) call.batch.answered++;
        this.#close(session, call);
        return;
      case 'end-cancelled':
        this.#settler.endCancelled(call);
        this.#close(session, call);
        return;
      case 'fail-owner-lost':
        this.#context.metrics.add('throughline_worker_requests_total', 1, { outcome: 'owner-lost' });
        this.#settle(session, call, ownerLostError(action.mayHaveRun));
        return;
      case 'dispatch':
        // The session begins with this very request.
        if (call.message.method === 'initialize') session.record = null;
        if (action.attempt > 1) this.#context.metrics.add('throughline_worker_requests_total', 1, { outcome: 'rerun' });
        this.#enqueue(session, call, action.attempt);
    }
  }

  #enqueue(session: HostedSession, call: OpenCall, attempt: number): void {
    const { config, load } = this.#context;
    if (this.#leaving) {
      call.state = 'held';
      return;
    }
    if (call.message.method === 'initialize' && !session.isLoaded) {
      const limit = config.servers[session.server]?.maxSessions ?? 0;
      if ((load.sessionsByServer.get(session.server) ?? 0) >= limit) {
        this.#settle(session, call, wireError('CAPACITY', 'This worker hosts as many sessions as it may; try again'));
        void this.#endSession(session.key, 'unknown');
        return;
      }
    }
    if (session.queue.length >= config.maxQueuedPerSession) {
      this.#settle(session, call, wireError('CAPACITY', 'The session has as many requests waiting as it may'));
      return;
    }
    call.attempt = attempt - 1;
    session.queue.push(call);
    this.#pumpSession(session);
  }

  #pumpAll(): void {
    for (const session of this.#sessions.all()) this.#pumpSession(session);
  }

  #pumpSession(session: HostedSession): void {
    const { config, load } = this.#context;
    while (
      session.running < config.maxRunningPerSession &&
      load.running < config.maxRunning &&
      !this.#stop.signal.aborted &&
      !this.#leaving
    ) {
      const call = session.queue.shift();
      if (call === undefined) return;
      session.running++;
      load.running++;
      call.holdsPlace = true;
      call.state = 'starting';
      call.attempt++;
      void this.#start(session, call);
    }
  }

  /** At most once: a request with effects reaches the server only after its start was read back accepted. */
  async #start(session: HostedSession, call: OpenCall): Promise<void> {
    try {
      if (call.strict) {
        const at = await this.#settler.started(call);
        if (!(await this.#isAccepted(at))) return;
      } else {
        call.cancelTimer = this.#context.clock.setTimer(LAZY_START_MS, () => {
          call.cancelTimer = null;
          if (!isDone(call)) void this.#settler.started(call);
        });
      }
      if (isDone(call)) return;
      call.state = 'running';
      const token = progressToken(call.message);
      if (token !== null) session.tokens.set(token, call);
      await session.deliver(call.message, call.canPoll && call.batch === null);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const reason = error instanceof HostError ? error.message : 'the server could not be reached';
      this.#context.logger.warn('call could not be delivered', {
        partition: this.#options.partition,
        session: session.key,
        method: call.message.method,
        error: reason,
      });
      this.#settle(session, call, wireError('SERVER_FAILED', `The server failed: ${reason}`));
      if (call.message.method === 'initialize') void this.#endSession(session.key, 'server-gone');
    }
  }

  async #isAccepted(at: Offset): Promise<boolean> {
    const { watch, claim } = this.#options;
    return (await watch.reached(at + 1, this.#stop.signal)) && watch.claims().inForceAt(at) === claim;
  }

  /** Answers a call with an error and forgets it. */
  #settle(session: HostedSession | undefined, call: OpenCall, error: JsonRpcErrorObject): void {
    if (isDone(call)) return;
    this.#settler.fail(call, error);
    this.#context.metrics.add('throughline_worker_requests_total', 1, { outcome: 'failed' });
    this.#close(session, call);
  }

  #answer(session: HostedSession | undefined, call: OpenCall, json: string): void {
    if (isDone(call)) return;
    this.#settler.answer(call, json);
    this.#context.metrics.add('throughline_worker_requests_total', 1, { outcome: 'answered' });
    this.#close(session, call);
  }

  /** After a call was settled: its place is free, its id is remembered. */
  #close(session: HostedSession | undefined, call: OpenCall): void {
    this.#forget(call);
    for (const mirror of call.mirrors) if (isDone(mirror.call)) this.#forget(mirror.call);
    const id = idKey(call.message.id);
    if (session?.calls.get(id) !== call) return;
    session.calls.delete(id);
    session.remember(id, { at: call.at, stream: call.stream, bodyHash: call.bodyHash, after: call.after });
    session.lastActivityMs = this.#context.clock.monoMs();
    const token = progressToken(call.message);
    if (token !== null && session.tokens.get(token) === call) session.tokens.delete(token);
    const queued = session.queue.indexOf(call);
    if (queued >= 0) session.queue.splice(queued, 1);
    if (call.holdsPlace) {
      call.holdsPlace = false;
      session.running--;
      this.#context.load.free();
    }
    for (const wake of this.#idleWaiters) wake();
  }

  #forget(call: OpenCall): void {
    this.#open.delete(call.at);
    this.#dirty = true;
  }

  #batchOf(
    inbound: InboundRecord,
    { index, count }: { readonly index: number; readonly count: number },
    isRequest: boolean,
  ): BatchState {
    const first = inbound.offset - index;
    let batch = this.#batches.get(first);
    if (batch === undefined) {
      batch = { count, seen: index, requests: 0, answered: 0 };
      this.#batches.set(first, batch);
    }
    batch.seen++;
    if (isRequest) batch.requests++;
    return batch;
  }

  /** After its last member: if all was answered before, the stream still has to end. */
  #closeBatch(inbound: InboundRecord, batch: BatchState): void {
    if (batch.seen < batch.count) return;
    const stream = streamOfRequest(inbound);
    this.#batches.delete(stream.at);
    const state = this.#options.watch.ledger().get(stream.at);
    if (batch.requests > 0 && batch.answered === batch.requests && state?.ended !== true)
      this.#settler.endBatch(inbound.key, stream);
  }

  // Notifications and responses of the client: they pass the queue.

  #takeNotification(key: string, message: JsonRpcNotification, canPoll: boolean): void {
    const session = this.#sessions.get(key);
    if (session === undefined || session.ended) {
      this.#drop('no-session');
      return;
    }
    session.lastActivityMs = this.#context.clock.monoMs();
    if (message.method === 'notifications/cancelled') {
      this.#cancel(session, message, canPoll);
      return;
    }
    void this.#updateRecord(session, message.method, message.params);
    this.#pass(session, message, canPoll);
  }

  #cancel(session: HostedSession, message: JsonRpcNotification, canPoll: boolean): void {
    const requestId = message.params?.['requestId'];
    const call =
      typeof requestId === 'string' || typeof requestId === 'number' ? session.calls.get(idKey(requestId)) : undefined;
    if (call === undefined || call.message.method === 'initialize') {
      this.#drop('cancel-of-nothing');
      return;
    }
    if (call.state === 'running') this.#pass(session, message, canPoll);
    this.#context.metrics.add('throughline_worker_requests_total', 1, { outcome: 'cancelled' });
    this.#settler.endCancelled(call);
    this.#close(session, call);
  }

  #takeResponse(key: string, message: JsonRpcResponse, canPoll: boolean): void {
    const session = this.#sessions.get(key);
    const named = parseWireRequestId(message.id);
    if (session === undefined || session.ended || named === null) {
      this.#drop('answer-to-nothing');
      return;
    }
    if (
      named.claim !== this.#options.claim ||
      named.instance !== session.instanceNumber ||
      !session.isLoaded ||
      !session.outgoing.delete(String(message.id))
    ) {
      this.#drop('answer-to-former-owner');
      return;
    }
    session.lastActivityMs = this.#context.clock.monoMs();
    this.#pass(session, { ...message, id: named.id }, canPoll);
  }

  /** Hands over what needs no answer; a server that is not there cannot take it. */
  #pass(session: HostedSession, message: JsonRpcMessage, canPoll: boolean): void {
    session.deliver(message, canPoll).catch((error: unknown) => {
      this.#drop('server-gone');
      this.#context.logger.warn('message could not be delivered', {
        partition: this.#options.partition,
        session: session.key,
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }

  // What the server says.

  async #fromServer(session: HostedSession, message: JsonRpcMessage, related: JsonRpcId | undefined): Promise<void> {
    if (this.#stop.signal.aborted || session.ended) return;
    const classified = classifyMessage(message);
    if ('fault' in classified) {
      this.#drop('server-spoke-no-json-rpc');
      return;
    }
    const call = related === undefined ? undefined : session.calls.get(idKey(related));
    if (classified.kind === 'response') await this.#serverAnswers(session, classified.message);
    else if (classified.kind === 'notification') this.#serverNotifies(session, classified.message, call);
    else this.#serverAsks(session, classified.message, call);
    await this.#writer.room();
  }

  async #serverAnswers(session: HostedSession, message: JsonRpcResponse): Promise<void> {
    const call = message.id === null ? undefined : session.calls.get(idKey(message.id));
    if (call?.state !== 'running') {
      this.#drop('answer-to-no-call');
      return;
    }
    const { method, params } = call.message;
    if (message.error === undefined) {
      if (method === 'tools/list') this.#context.catalogs.get(session.server)?.learn(message.result);
      try {
        // What another worker needs to go on must be in the log before the client can act on the answer.
        if (method === 'initialize') await this.#recordInitialize(session, call.message, message.result);
        else await this.#updateRecord(session, method, params);
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#settle(session, call, wireError('LOG_UNAVAILABLE', 'The session could not be recorded'));
        this.#context.logger.warn('session record failed', {
          session: session.key,
          error: error instanceof Error ? error.message : String(error),
        });
        return;
      }
    }
    this.#answer(session, call, JSON.stringify(message));
    if (method === 'initialize' && message.error !== undefined) await this.#endSession(session.key, 'server-gone');
  }

  async #recordInitialize(session: HostedSession, initialize: JsonRpcRequest, result: unknown): Promise<void> {
    const { version, capabilities } = initializeResult(result);
    session.capabilities = capabilities;
    session.record = {
      server: session.server,
      principal: session.principal,
      version,
      createdMs: session.createdMs,
      initialize,
      initialized: false,
      logLevel: null,
      subscriptions: [],
    };
    await this.#options.directory.put(this.#options.partition, session.key, session.record);
  }

  #updateRecord(
    session: HostedSession,
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
  ): Promise<void> {
    const record = session.record === null ? null : recordAfter(session.record, method, params);
    if (record === null) return Promise.resolve();
    session.record = record;
    const put = this.#options.directory.put(this.#options.partition, session.key, record);
    put.catch((error: unknown) => {
      this.#context.logger.warn('session record failed', {
        session: session.key,
        error: error instanceof Error ? error.message : String(error),
      });
    });
    return put;
  }

  #serverNotifies(session: HostedSession, message: JsonRpcNotification, related: OpenCall | undefined): void {
    if (message.method === 'notifications/progress') {
      const token = message.params?.['progressToken'];
      const call = typeof token === 'string' || typeof token === 'number' ? session.tokens.get(token) : undefined;
      if (call?.state !== 'running') this.#drop('progress-of-no-call');
      else this.#send(call, message);
      return;
    }
    if (message.method === 'notifications/cancelled') {
      this.#serverCancels(session, message);
      return;
    }
    if (message.method === 'notifications/tools/list_changed') this.#context.catalogs.get(session.server)?.forget();
    // A log line of the only call that runs is told where that call is answered.
    const call = related ?? (message.method === 'notifications/message' ? onlyRunning(session) : undefined);
    if (call?.state === 'running') this.#send(call, message);
    else if (!this.#settler.sendStandalone(session.key, JSON.stringify(message))) this.#drop('too-large');
  }

  #serverCancels(session: HostedSession, message: JsonRpcNotification): void {
    const requestId = message.params?.['requestId'];
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
    const id = wireRequestId(this.#options.claim, session.instanceNumber, requestId);
    const outgoing = session.outgoing.get(id);
    if (outgoing === undefined) return;
    session.outgoing.delete(id);
    this.#toClient(
      session,
      outgoing.call,
      JSON.stringify({ ...message, params: { ...message.params, requestId: id } }),
    );
  }

  #serverAsks(session: HostedSession, message: JsonRpcRequest, related: OpenCall | undefined): void {
    const id = wireRequestId(this.#options.claim, session.instanceNumber, message.id);
    const call = related ?? onlyRunning(session) ?? (session.standaloneSeen ? undefined : oldestRunning(session));
    session.outgoing.set(id, { call: call ?? null, id: message.id });
    if (this.#toClient(session, call ?? null, JSON.stringify({ ...message, id }))) return;
    session.outgoing.delete(id);
    this.#pass(
      session,
      {
        jsonrpc: '2.0',
        id: message.id,
        error: wireError('RESULT_TOO_LARGE', 'The request is larger than a record of the log may be'),
      },
      false,
    );
  }

  #send(call: OpenCall, message: JsonRpcMessage): void {
    if (!this.#settler.send(call, JSON.stringify(message))) this.#drop('too-large');
  }

  #toClient(session: HostedSession, call: OpenCall | null, json: string): boolean {
    return call !== null && !isDone(call)
      ? this.#settler.send(call, json)
      : this.#settler.sendStandalone(session.key, json);
  }

  #closeStream(session: HostedSession, related: JsonRpcId | 'standalone'): void {
    if (related === 'standalone') {
      this.#settler.closeStream(session.key, STANDALONE);
      return;
    }
    const call = session.calls.get(idKey(related));
    if (call?.state === 'running' && call.canPoll && call.batch === null)
      this.#settler.closeStream(session.key, call.stream);
  }

  #gone(session: HostedSession, reason: string): void {
    this.#context.logger.warn('server instance is gone', {
      partition: this.#options.partition,
      session: session.key,
      server: session.server,
      reason,
    });
    session.outgoing.clear();
    for (const call of [...session.calls.values()]) {
      if (call.state === 'running')
        this.#settle(session, call, wireError('SERVER_FAILED', `The server is gone: ${reason}`, { mayHaveRun: true }));
    }
    if (!this.#canRestore(session.server) || session.record === null) void this.#endSession(session.key, 'server-gone');
  }

  // Sessions.

  #makeSession(key: string, server: string, principal: string, record: SessionRecord | null): HostedSession | null {
    const host = this.#context.hosts.get(server);
    if (host === undefined) return null;
    return new HostedSession(
      {
        key,
        server,
        principal,
        host,
        clock: this.#context.clock,
        onMessage: (session, message, related) => this.#fromServer(session, message, related),
        onCloseStream: (session, related) => {
          this.#closeStream(session, related);
        },
        onGone: (session, reason) => {
          this.#gone(session, reason);
        },
        onInstance: (by) => {
          this.#context.load.addSession(server, by);
          this.#context.metrics.set('throughline_worker_sessions', this.#context.load.sessions);
        },
      },
      record,
      record?.createdMs ?? this.#context.clock.wallMs(),
    );
  }

  #canRestore(server: string): boolean {
    return this.#context.config.servers[server]?.onOwnerLoss === 'restore';
  }

  /** Fails all that is pending in the session, both ways, then records its end. */
  async #endSession(key: string, reason: SessionEndReason): Promise<void> {
    const session = this.#sessions.get(key);
    if (session?.ended === true) return;
    const { directory, partition } = this.#options;
    if (session !== undefined) {
      session.ended = true;
      for (const [id, { call }] of session.outgoing) {
        this.#toClient(
          session,
          call,
          JSON.stringify({
            jsonrpc: '2.0',
            method: 'notifications/cancelled',
            params: { requestId: id, reason: `session ended: ${reason}` },
          }),
        );
      }
      session.outgoing.clear();
      const error = reason === 'owner-lost' ? ownerLostError(true) : sessionEndedError(reason);
      for (const call of [...session.calls.values()]) this.#settle(session, call, error);
      this.#sessions.delete(key);
    }
    const ended = this.#settler.sessionEnded(key, reason);
    try {
      await Promise.all([
        ended,
        directory.hasEnded(partition, key) ? undefined : directory.end(partition, key, reason),
      ]);
    } catch (error) {
      if (!this.#stop.signal.aborted)
        this.#context.logger.warn('session end failed', {
          session: key,
          error: error instanceof Error ? error.message : String(error),
        });
    }
    await session?.unload();
  }

  /** Ends sessions that are idle or too old, unloads what can be rebuilt. Called now and then. */
  sweep(): void {
    const { config } = this.#context;
    if (this.#leaving) return;
    for (const [session, reason] of this.#sessions.overdue(
      (server) => (config.servers[server]?.idleTtl ?? 0) * 1000,
      config.maxLifeMs,
    ))
      void this.#endSession(session.key, reason);
    for (const session of this.#sessions.unloadable(config.unloadAfterMs, (server) => this.#canRestore(server)))
      void session.unload();
  }

  #onEvent(event: EventRecord, verdict: Verdict): void {
    const { claim } = this.#options;
    if (event.body.type === 'claimed' && verdict === 'accepted' && event.offset > claim) {
      this.#lose('another worker claimed the partition');
      return;
    }
    if (verdict !== 'accepted' || event.body.type !== 'attached' || event.body.stream !== STANDALONE) return;
    const session = this.#sessions.get(event.key);
    if (session === undefined) return;
    // A client that listens anew without a cursor may have missed changes: it is told what to read again.
    if (session.standaloneSeen)
      for (const method of listChanges(session.capabilities))
        this.#settler.sendStandalone(session.key, JSON.stringify({ jsonrpc: '2.0', method }));
    session.standaloneSeen = true;
  }

  // Checkpoints, leaving, losing.

  /** What a successor needs; `null` if the newest checkpoint says it all. */
  checkpointValue(force: boolean): {
    readonly claims: readonly Offset[];
    readonly inbound: Offset;
    readonly from: Offset;
    readonly open: { at: Offset; attempt: number; sent: boolean }[];
  } | null {
    if (!this.#dirty && !force) return null;
    this.#dirty = false;
    const calls = [...this.#open.values()].sort((a, b) => a.at - b.at);
    const lowest = Math.min(this.#inbound, ...calls.map((call) => call.stream.at), ...this.#batches.keys());
    return {
      claims: this.#options.watch.claims().list(),
      inbound: this.#inbound,
      from: Math.min(lowest, this.#dedupe.from()),
      open: calls.map(({ at, attempt, sent }) => ({ at, attempt, sent })),
    };
  }

  /** Appends a checkpoint; resolves with its offset once it was read back accepted, or `null` if the tenure is over. */
  async writeCheckpoint(value: string): Promise<Offset | null> {
    const at = await this.#settler.checkpoint(value);
    return (await this.#isAccepted(at)) ? at : null;
  }

  /** No new work from here. Resolves when nothing runs any more, or `signal` fires. */
  async quiesce(signal: AbortSignal): Promise<void> {
    this.#leaving = true;
    for (const session of this.#sessions.all()) for (const call of session.queue.splice(0)) call.state = 'held';
    const isQuiet = (): boolean => this.#sessions.all().every((session) => session.running === 0);
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!isQuiet() && !signal.aborted && !this.#stop.signal.aborted) return;
        this.#idleWaiters.delete(check);
        signal.removeEventListener('abort', check);
        this.#stop.signal.removeEventListener('abort', check);
        resolve();
      };
      this.#idleWaiters.add(check);
      signal.addEventListener('abort', check, { once: true });
      this.#stop.signal.addEventListener('abort', check, { once: true });
      check();
    });
  }

  async release(): Promise<void> {
    await this.#settler.released();
  }

  /** Closes all instances; nothing is written any more. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#writer.stop();
    this.#context.load.onFree.delete(this.#pump);
    for (const call of this.#open.values()) call.cancelTimer?.();
    const sessions = this.#sessions.all();
    for (const session of sessions) {
      this.#context.load.running -= session.running;
      session.running = 0;
      session.ended = true;
      for (const call of session.calls.values()) call.holdsPlace = false;
    }
    await Promise.all(sessions.map((session) => session.unload()));
  }

  #lose(reason: string): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#options.onLost(reason);
  }

  #drop(reason: string): void {
    this.#context.metrics.add('throughline_worker_dropped_total', 1, { reason });
  }

  #unreadable(record: LogRecord, why: string): void {
    const { partition } = this.#options;
    this.#context.metrics.add('throughline_worker_unreadable_total');
    this.#context.logger.warn('inbound record is unreadable; copied to dead-letter', {
      partition,
      offset: record.offset,
      why,
    });
    copyToDeadLetter(this.#context.log, { topic: 'inbound', partition }, record, why).catch((error: unknown) => {
      this.#context.logger.error('copy to dead-letter failed', {
        partition,
        offset: record.offset,
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }
}

/** What settled it may have happened while something was awaited. */
function isDone(call: OpenCall): boolean {
  return call.state === 'done';
}

function parseMessage(record: LogRecord): ReturnType<typeof classifyMessage> | null {
  try {
    return classifyMessage(JSON.parse(decodeText(record.value ?? new Uint8Array(0))));
  } catch {
    return null;
  }
}

function endReason(record: LogRecord): SessionEndReason {
  try {
    const value: unknown = JSON.parse(decodeText(record.value ?? new Uint8Array(0)));
    if (typeof value === 'object' && value !== null && 'reason' in value) {
      return SESSION_END_REASONS.find((reason) => reason === value.reason) ?? 'unknown';
    }
  } catch {
    // Falls through.
  }
  return 'unknown';
}

/** Of a member of a batch: what was sent on the shared stream counts for each. */
function stateOf(ledger: RequestLedger, call: OpenCall): Readonly<RequestState> | undefined {
  const own = ledger.get(call.at);
  if (call.batch === null) return own;
  const shared = ledger.get(call.stream.at);
  if (own === undefined && shared === undefined) return undefined;
  return { attempt: own?.attempt ?? 0, ended: own?.ended ?? false, sent: shared?.sent ?? own?.sent ?? false };
}

function progressToken(message: JsonRpcRequest): JsonRpcId | null {
  const meta = message.params?.['_meta'];
  if (typeof meta !== 'object' || meta === null || !('progressToken' in meta)) return null;
  const { progressToken: token } = meta;
  return typeof token === 'string' || typeof token === 'number' ? token : null;
}

function onlyRunning(session: HostedSession): OpenCall | undefined {
  const [first, second] = running(session);
  return second === undefined ? first : undefined;
}

function oldestRunning(session: HostedSession): OpenCall | undefined {
  return running(session)[0];
}

function running(session: HostedSession): readonly OpenCall[] {
  return [...session.calls.values()].filter((call) => call.state === 'running').sort((a, b) => a.at - b.at);
}

function initializeResult(result: unknown): {
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
} {
  const fields = typeof result === 'object' && result !== null ? (result as Record<string, unknown>) : {};
  const { protocolVersion, capabilities } = fields;
  return {
    version: typeof protocolVersion === 'string' ? protocolVersion : '',
    capabilities:
      typeof capabilities === 'object' && capabilities !== null ? (capabilities as Record<string, unknown>) : {},
  };
}

function listChanges(capabilities: Readonly<Record<string, unknown>>): readonly string[] {
  return ['tools', 'resources', 'prompts']
    .filter((kind) => kind in capabilities)
    .map((kind) => `notifications/${kind}/list_changed`);
}

function ownerLostError(mayHaveRun: boolean): JsonRpcErrorObject {
  const text = mayHaveRun
    ? 'The worker that ran this call is gone; it may have run'
    : 'The worker of this session is gone; this call did not run';
  return wireError('OWNER_LOST', text, { reason: 'owner-lost', mayHaveRun });
}

function sessionEndedError(reason?: string): JsonRpcErrorObject {
  return wireError('SESSION_ENDED', 'The session has ended; start a new one with initialize', {
    reason: 'session-ended',
    ...(reason === undefined ? {} : { cause: reason }),
  });
}
