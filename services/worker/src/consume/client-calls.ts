/**
 * The client's requests: taken in order, run at most once, settled once. What has effects reaches the server only after
 * its start was read back accepted. SPEC: WRK-SETTLE, WRK-EFFECTS, WRK-TAKEOVER, WRK-PLACES.
 */
import { canPrime, streamOfRequest, wireError } from '@throughline/protocol';
import type {
  InboundRecord,
  JsonRpcErrorObject,
  JsonRpcId,
  JsonRpcRequest,
  Offset,
  OpenRequest,
} from '@throughline/protocol';
import { HOST_MS } from './host-deadlines.ts';
import { HostError } from '../host/host.ts';
import { ownerLostError, sessionEndedError } from '../settle/call-errors.ts';
import type { BatchState } from './batch-table.ts';
import type { DedupeWindow } from './dedupe-window.ts';
import { NoSeatError, RestoreRefusedError } from './hosted-session.ts';
import type { HostedSession } from './hosted-session.ts';
import { hashBody, idKey, progressToken } from './open-call.ts';
import type { OpenCall, SettledCall } from './open-call.ts';
import { Repetitions } from './repetitions.ts';
import type { SessionLife } from './session-life.ts';
import { isAccepted } from './tenure-parts.ts';
import type { Phase, TenureParts } from './tenure-parts.ts';
import { TakenOverCalls } from './taken-over-calls.ts';
import { effectsOf } from './tool-catalog.ts';
import { withdraw } from './withdraw.ts';

/** A call without effects that is settled sooner leaves no record of its start. */
const LAZY_START_MS = 5;
/** Bytes of a record for each open call, so that a checkpoint that lists them all fits into one. */
const BYTES_PER_OPEN = 64;

/** Answered at once by any server: they need no place, so that long calls of others cannot shut a client out. */
const PASSES_QUEUE: ReadonlySet<string> = new Set(['initialize', 'ping']);

type MessageBody = Extract<InboundRecord['body'], { readonly type: 'message' }>;

export class ClientCalls {
  readonly #parts: TenureParts;
  readonly #life: SessionLife;
  readonly #dedupe: DedupeWindow;
  readonly #repetitions: Repetitions;
  readonly #takenOver: TakenOverCalls;
  readonly #open = new Map<Offset, OpenCall>();
  readonly #maxOpen: number;

  constructor(parts: TenureParts, life: SessionLife, dedupe: DedupeWindow) {
    this.#parts = parts;
    this.#life = life;
    this.#dedupe = dedupe;
    this.#maxOpen = Math.floor(parts.context.log.description.maxRecordBytes / BYTES_PER_OPEN);
    this.#repetitions = new Repetitions(parts, {
      settle: (session, call, error) => {
        this.#settle(session, call, error);
      },
      answer: (session, call, json) => {
        this.answer(session, call, json);
      },
      forget: (call) => {
        this.#forget(call);
      },
    });
    this.#takenOver = new TakenOverCalls(parts, life, {
      run: (session, call, attempt) => {
        this.#enqueue(session, call, attempt);
      },
      settle: (session, call, error) => {
        this.#settle(session, call, error);
      },
      close: (session, call) => {
        this.#close(session, call);
      },
      lose: (session, call) => {
        this.lose(session, call);
      },
      count: (outcome) => {
        this.#count(outcome);
      },
    });
  }

  /** After a takeover: calls that had spoken go on. */
  recall(): void {
    this.#takenOver.recall();
  }

  /** What a checkpoint says of open requests. */
  open(): OpenRequest[] {
    const calls = [...this.#open.values()].sort((a, b) => a.at - b.at);
    return calls.map(({ at, attempt, sent }) => ({ at, attempt: this.#counted(attempt), sent }));
  }

  /** A second run that this owner cuts short, and outlives, is no reason not to run it again. */
  #counted(attempt: number): number {
    return this.#parts.isHalted() && attempt > 1 ? attempt - 1 : attempt;
  }

  openCount(): number {
    return this.#open.size;
  }

  /** The lowest inbound offset of an open request; infinite if there is none. */
  lowest(): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const at of this.#open.keys()) lowest = Math.min(lowest, at);
    return lowest;
  }

  /** The lowest inbound offset that a successor needs for the open requests; infinite if there are none. */
  from(): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const { stream, mirrorOf } of this.#open.values()) lowest = Math.min(lowest, stream.at, mirrorOf ?? Infinity);
    return lowest;
  }

  take(
    inbound: InboundRecord,
    body: MessageBody,
    message: JsonRpcRequest,
    batch: BatchState | null,
    phase: Phase,
  ): void {
    const { context, sessions, watch } = this.#parts;
    const call = this.#makeCall(inbound, body, message, batch, phase);
    const id = idKey(message.id);
    const isTakenOver = phase.kind === 'takeover';
    this.#dedupe.took(call.at, isTakenOver ? phase.newestMs - inbound.record.timestampMs : 0);
    if (isTakenOver && (phase.isPast || watch.since().ledger().get(call.at)?.ended === true)) {
      // Finished under a former owner: known only so that its repetition does not run.
      if (batch !== null) batch.answered++;
      sessions.get(call.key)?.remember(id, settledOf(call));
      return;
    }
    this.#open.set(call.at, call);
    this.#parts.touch();
    const session = this.#sessionOf(call, body);
    if (session === null)
      this.#refuse(call, 'SERVER_FAILED', `The server ${JSON.stringify(body.server)} is not hosted here`);
    else if (session === undefined || session.ended || (!isTakenOver && this.#life.isTerminating(call.key)))
      this.#settle(undefined, call, sessionEndedError());
    else if (this.#open.size > this.#maxOpen)
      this.#refuse(call, 'CAPACITY', 'This worker has as many open requests as it may');
    else {
      session.lastActivityMs = context.clock.monoMs();
      if (this.#repetitions.take(session, call, id, isTakenOver)) return;
      session.calls.set(id, call);
      if (isTakenOver) this.#takenOver.take(session, call, id, phase);
      else this.#enqueue(session, call, 1);
    }
  }

  /** The client cancels: `false` if there is nothing to cancel. */
  cancel(session: HostedSession, requestId: JsonRpcId, tellServer: () => void): boolean {
    const call = session.calls.get(idKey(requestId));
    if (call === undefined || call.message.method === 'initialize') return false;
    if (call.state === 'running') tellServer();
    this.#count('cancelled');
    this.#parts.settler.endCancelled(call);
    this.#close(session, call);
    return true;
  }

  /** The server's answer. */
  answer(session: HostedSession | undefined, call: OpenCall, json: string): void {
    if (call.state === 'done') return;
    this.#parts.settler.answer(call, json);
    this.#count('answered');
    this.#close(session, call);
  }

  fail(session: HostedSession, call: OpenCall, error: JsonRpcErrorObject): void {
    this.#settle(session, call, error);
  }

  /** Fails a call of a former owner, which may have run, and withdraws what it had asked. */
  lose(session: HostedSession, call: OpenCall): void {
    if (isDone(call)) return;
    withdraw(
      session,
      'the call has failed',
      (asked) => (asked.askedBy ?? asked.call) === call,
      (asked, json) => {
        if (asked.call === null) this.#parts.settler.sendStandalone(session.key, json);
        else this.#parts.settler.send(asked.call, json);
      },
    );
    this.#count('owner-lost');
    this.#settle(session, call, ownerLostError(true));
  }

  failAll(session: HostedSession, error: JsonRpcErrorObject, which: 'all' | 'running'): void {
    for (const call of [...session.calls.values()])
      if (which === 'all' || call.state === 'running') this.#settle(session, call, error);
  }

  /** What waits for a place is left to the successor. */
  hold(): void {
    for (const session of this.#parts.sessions.all()) for (const call of session.queue.splice(0)) call.state = 'held';
  }

  /** Stops timers and gives all places back. */
  close(): void {
    const { places } = this.#parts.context;
    // Before any place is given back: else one of these would get it.
    for (const session of this.#parts.sessions.all()) places.leave(session);
    for (const call of this.#open.values()) {
      call.cancelTimer?.();
      call.cancelTimer = null;
      call.place?.();
      call.place = null;
    }
    for (const session of this.#parts.sessions.all()) session.running = 0;
  }

  #makeCall(
    inbound: InboundRecord,
    { server, version, after }: MessageBody,
    message: JsonRpcRequest,
    batch: BatchState | null,
    phase: Phase,
  ): OpenCall {
    const effects = effectsOf(message, this.#parts.context.catalogs.get(server));
    return {
      at: inbound.offset,
      stream: streamOfRequest(inbound),
      key: inbound.key,
      message,
      bodyHash: hashBody(inbound.record.value ?? new Uint8Array(0)),
      after,
      batch,
      canPoll: canPrime(version),
      effects,
      strict: phase.kind === 'takeover' || effects !== 'none',
      attempt: 0,
      sent: false,
      state: 'queued',
      mirrors: [],
      mirrorOf: null,
      cancelTimer: null,
      place: null,
      memory: null,
    };
  }

  /** `null`: its server is not hosted here; `undefined`: there is no such session. */
  #sessionOf(call: OpenCall, { server, principal }: MessageBody): HostedSession | null | undefined {
    if (!this.#parts.context.hosts.has(server)) return null;
    const session = this.#parts.sessions.get(call.key);
    if (session !== undefined || call.message.method !== 'initialize' || this.#life.hasEnded(call.key)) return session;
    return this.#life.make(call.key, server, principal, null);
  }

  #enqueue(session: HostedSession, call: OpenCall, attempt: number): void {
    const { config, seats } = this.#parts.context;
    if (this.#parts.isLeaving()) {
      call.state = 'held';
      return;
    }
    if (call.message.method === 'initialize' && !session.isLoaded && seats.isFull(session.server)) {
      this.#refuseSession(session, call);
      return;
    }
    if (session.calls.size > config.maxQueuedPerSession + config.maxRunningPerSession) {
      const error = wireError('CAPACITY', 'The session has as many requests waiting as it may');
      this.#settle(session, call, error);
      return;
    }
    call.attempt = attempt - 1;
    if (PASSES_QUEUE.has(call.message.method)) this.#start(session, call);
    else {
      session.queue.push(call);
      this.#askForPlace(session);
    }
  }

  #askForPlace(session: HostedSession): void {
    this.#parts.context.places.wait(session, () => this.#startNext(session));
  }

  #startNext(session: HostedSession): boolean {
    const { context, over, isLeaving } = this.#parts;
    if (over.aborted || isLeaving() || session.ended) return false;
    if (session.running >= context.config.maxRunningPerSession) return false;
    const call = session.queue.shift();
    if (call === undefined) return false;
    session.running++;
    call.place = () => {
      context.places.free(session);
    };
    this.#start(session, call);
    return true;
  }

  #start(session: HostedSession, call: OpenCall): void {
    call.state = 'starting';
    call.attempt++;
    void this.#run(session, call);
  }

  /** At most once: a request with effects reaches the server only after its start was read back accepted. Never rejects. */
  async #run(session: HostedSession, call: OpenCall): Promise<void> {
    const { settler, stillOwner, over, context, isHalted } = this.#parts;
    let isHandedOver = false;
    try {
      if (call.strict) {
        if (!(await isAccepted(this.#parts, await settler.started(call)))) return;
      } else {
        call.cancelTimer = context.clock.setTimer(LAZY_START_MS, () => {
          if (!isDone(call)) void settler.started(call);
        });
      }
      if (isDone(call) || isHalted() || over.aborted) return;
      call.state = 'running';
      const token = progressToken(call.message);
      if (token !== null) session.tokens.set(token, call);
      const isWanted = (): boolean | Promise<boolean> =>
        !isDone(call) && !isHalted() && (stillOwner.isSure() || stillOwner.look(over));
      if (call.message.method === 'initialize') this.#expectBeginning(session, call);
      await session.deliver(call.message, call.canPoll && call.batch === null, isWanted, () => {
        isHandedOver = true;
      });
    } catch (error) {
      // Nobody settles it here any more: the successor finds it started and not answered.
      if (!over.aborted && !isHalted()) this.#undelivered(session, call, error, isHandedOver);
    }
  }

  /** A server that does not answer `initialize` would hold its client, and its seat, for as long as a session may be idle. */
  #expectBeginning(session: HostedSession, call: OpenCall): void {
    const cancelStart = call.cancelTimer;
    const cancel = this.#parts.context.clock.setTimer(HOST_MS.initialize, () => {
      const reason = `the server did not answer initialize within ${HOST_MS.initialize / 1000} s`;
      this.#undelivered(session, call, new HostError('HOST_TIMEOUT', reason), true);
    });
    call.cancelTimer = () => {
      cancelStart?.();
      cancel();
    };
  }

  #undelivered(session: HostedSession, call: OpenCall, error: unknown, mayHaveRun: boolean): void {
    const isInitialize = call.message.method === 'initialize';
    if (error instanceof NoSeatError) {
      if (isInitialize) this.#refuseSession(session, call);
      else
        this.#settle(session, call, wireError('CAPACITY', 'This worker hosts as many sessions as it may; try again'));
      return;
    }
    const isKnown = error instanceof HostError || error instanceof RestoreRefusedError;
    const reason = isKnown ? error.message : 'the server could not be reached';
    this.#parts.context.logger.warn('call could not be delivered', {
      partition: this.#parts.partition,
      session: session.key,
      method: call.message.method,
      error: isKnown ? reason : String(error),
    });
    this.#settle(session, call, wireError('SERVER_FAILED', `The server failed: ${toldOf(error)}`, { mayHaveRun }));
    if (isInitialize || error instanceof RestoreRefusedError) void this.#life.end(session.key, 'server-gone');
  }

  #refuse(call: OpenCall, code: 'CAPACITY' | 'SERVER_FAILED', text: string): void {
    this.#settle(undefined, call, wireError(code, text));
  }

  #refuseSession(session: HostedSession, call: OpenCall): void {
    this.#settle(session, call, wireError('CAPACITY', 'This worker hosts as many sessions as it may; try again'));
    void this.#life.end(session.key, 'unknown');
  }

  /** Answers a call with an error and forgets it. */
  #settle(session: HostedSession | undefined, call: OpenCall, error: JsonRpcErrorObject): void {
    if (isDone(call)) return;
    this.#parts.settler.fail(call, error);
    this.#count('failed');
    this.#close(session, call);
  }

  /** After a call was settled: its place is free, its id is remembered. */
  #close(session: HostedSession | undefined, call: OpenCall): void {
    this.#forget(call);
    for (const mirror of call.mirrors) if (isDone(mirror.call)) this.#forget(mirror.call);
    const id = idKey(call.message.id);
    if (session?.calls.get(id) !== call) return;
    session.calls.delete(id);
    session.remember(id, settledOf(call));
    session.lastActivityMs = this.#parts.context.clock.monoMs();
    const token = progressToken(call.message);
    if (token !== null && session.tokens.get(token) === call) session.tokens.delete(token);
    if (call.memory !== null)
      for (const [asked, request] of session.outgoing)
        if (request.call === call && request.id === null) session.outgoing.delete(asked);
    const queued = session.queue.indexOf(call);
    if (queued >= 0) session.queue.splice(queued, 1);
    const { place } = call;
    if (place !== null) {
      call.place = null;
      session.running--;
      if (session.queue.length > 0) this.#askForPlace(session);
      place();
    }
    this.#parts.wake();
  }

  #forget(call: OpenCall): void {
    this.#open.delete(call.at);
    this.#parts.touch();
  }

  #count(outcome: 'answered' | 'failed' | 'cancelled' | 'owner-lost' | 'rerun'): void {
    this.#parts.context.metrics.add('throughline_worker_requests_total', 1, { outcome });
  }
}

/** What settled it may have happened while something was awaited. */
function isDone(call: OpenCall): boolean {
  return call.state === 'done';
}

function settledOf({ at, stream, bodyHash, after }: OpenCall): SettledCall {
  return { at, stream, bodyHash, after };
}

/** What a client hears of a server that could not take its call: nothing of how it is set up. SPEC: WRK-TELLS. */
function toldOf(error: unknown): string {
  if (error instanceof RestoreRefusedError) return error.message;
  if (!(error instanceof HostError)) return 'it could not be reached';
  switch (error.code) {
    case 'HOST_CONFIG':
      return 'it could not be started';
    case 'HOST_TIMEOUT':
      return 'it did not answer in time';
    case 'HOST_GONE':
      return error.message;
  }
}
