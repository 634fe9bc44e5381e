/**
 * A simulated MCP client: speaks the wire, keeps cursors, resumes on any gateway, starts anew when its session is gone,
 * and writes down everything it receives. It believes nothing: what it was told is judged after the run.
 */
import { sleep } from '@throughline/log';
import { ClientWire } from './client-wire.ts';
import type { SimClientOptions } from './client-wire.ts';
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import type { Fetched } from './fetch.ts';
import { forgeCursor, refusalOf } from './forge-cursor.ts';
import type { CallOutcome, CallRecord, SessionRecordOfRun } from './records-of-run.ts';
import type { ClientStep } from './plan.ts';
import type { SseEvent } from './sse-parser.ts';

interface Cursor {
  readonly id: string;
}

/** One stream as the client knows it: the cursors that it was given, the newest last. */
interface KnownStream {
  readonly cursors: Cursor[];
}

interface Session {
  readonly record: SessionRecordOfRun;
  readonly calls: Map<string, CallRecord>;
  readonly streams: Map<string, KnownStream>;
  readonly answered: Set<string>;
  /** Fires when the session is known to be over. */
  readonly over: AbortController;
}

/** How a session is lost that was never answered to. */
export const NEVER_BEGAN = 'initialize was not answered';

const BACKOFF_MS = 150;
const MAX_CURSORS = 50;
/** Request ids of a client's own, apart from those of its steps. */
const FIRST_OWN_ID = 9_000_000;

const idKey = (id: unknown): string => JSON.stringify(id);
const streamOfCursor = (id: string): string => id.split('.')[3]?.split('~')[0] ?? '';

export class SimClient {
  readonly #options: SimClientOptions;
  readonly #wire: ClientWire;
  readonly #chance: Chance;
  readonly #sessions: Session[] = [];
  #session: Session | null = null;
  #running = 0;
  #counter = 0;
  #isFinished = false;

  constructor(options: SimClientOptions) {
    this.#options = options;
    this.#wire = new ClientWire(options);
    this.#chance = createChance(options.seed, options.name);
  }

  /** No call of this client is open any more, and it makes no new one. */
  isQuiet(): boolean {
    return this.#isFinished && this.#running === 0;
  }

  /** Takes its steps until it is wound down, and has a session all the time. */
  async run(): Promise<void> {
    const { clock, planned } = this.#options;
    const startMs = clock.monoMs();
    for (const step of planned.steps) {
      await sleep(clock, Math.max(0, startMs + step.atMs - clock.monoMs()));
      let session: Session | null = null;
      while (session === null && !this.#options.isWindingDown()) session = await this.#ensureSession();
      if (session === null || this.#options.isWindingDown()) break;
      if (this.#running < planned.maxParallel) this.#take(session, step);
    }
    this.#isFinished = true;
  }

  /** One call after all faults: the session goes on, or a new one can be had, and it works. */
  async probe(): Promise<CallRecord | null> {
    let call: CallRecord | null = null;
    // It may only now learn that its session is over.
    for (let tries = 0; tries < 5 && call?.outcome?.kind !== 'result'; tries++) {
      const session = await this.#ensureSession();
      if (session === null) continue;
      call = this.#makeCall(session, 'echo', `p-${++this.#counter}`, this.#chance);
      await this.#makeGroup(session, [call], this.#chance, { echo: true });
    }
    return call;
  }

  /** Reads every stream of its living sessions again, from the oldest cursor, on every gateway. */
  async rereadAll(): Promise<void> {
    for (const session of this.#sessions) {
      if (session.over.signal.aborted) continue;
      for (const [label, stream] of session.streams) {
        const oldest = stream.cursors[0];
        if (oldest === undefined || label.startsWith('s')) continue;
        for (const gateway of this.#options.gateways) await this.#reread(session, gateway, oldest.id);
      }
    }
  }

  /** Sessions that were ended, by this client or by a refusal, must be gone everywhere. */
  async checkGone(): Promise<void> {
    const { gateways, records } = this.#options;
    for (const session of this.#sessions) {
      const { id, lost, server } = session.record;
      // Told by a 404 of one gateway, it is gone there; told in-band, it must be gone everywhere.
      if (lost === null || (!session.record.deleted && !lost.startsWith('in-band'))) continue;
      for (const gateway of gateways) {
        let status: number | null = null;
        for (let tries = 0; tries < 20 && (status === null || status === 503); tries++) {
          const record = this.#wire.record(session, 'POST', [], null, this.#chance);
          record.gateway = gateway;
          const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
          status = (
            await this.#wire.fetch(record, this.#wire.wire('POST', session, server, body, null), this.#chance, {})
          ).status;
          if (status === null || status === 503) await sleep(this.#options.clock, BACKOFF_MS);
        }
        records.gone.push({ session: id, gateway, status });
      }
    }
  }

  // Sessions.

  async #ensureSession(): Promise<Session | null> {
    const known = this.#session;
    if (known !== null && !known.over.signal.aborted) return known;
    this.#session = await this.#initialize();
    return this.#session;
  }

  async #initialize(): Promise<Session | null> {
    const { clock, planned, records, trace, name } = this.#options;
    const chance = this.#chance;
    const server = chance.pick(planned.servers);
    const id = FIRST_OWN_ID + ++this.#counter;
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'initialize',
      params: {
        protocolVersion: planned.version,
        capabilities: { elicitation: {} },
        clientInfo: { name, version: '1' },
      },
    });
    const found: { session: Session | null } = { session: null };
    let isInitialized = false;
    let cursor: string | null = null;
    const onEvent = (event: SseEvent): boolean => {
      if (event.hasId) cursor = event.id;
      if (event.data === '') return true;
      const message = JSON.parse(event.data) as { id?: unknown; result?: unknown };
      if (message.id === id) isInitialized = message.result !== undefined;
      return message.id !== id;
    };
    const onHead = (status: number, headers: Readonly<Record<string, string>>): void => {
      const text = headers['Mcp-Session-Id'];
      if (status !== 200 || text === undefined || found.session !== null) return;
      const record = { id: text, server, version: planned.version, deleted: false, forged: false, lost: null };
      found.session = {
        record,
        calls: new Map(),
        streams: new Map(),
        answered: new Set(),
        over: new AbortController(),
      };
      records.sessions.push(record);
      this.#sessions.push(found.session);
    };
    const fetched = await this.#wire.post(null, server, body, [id], chance, { onEvent, onHead });
    const { session } = found;
    // The answer may be on its way still: it is resumed like any other.
    for (let tries = 0; session !== null && !isInitialized && cursor !== null && tries < 20; tries++) {
      await sleep(clock, fetched.retryMs ?? BACKOFF_MS);
      const resumed = await this.#wire.get(session, cursor, chance, { onEvent });
      if (resumed.status === 404 || resumed.status === 204) break;
    }
    if (session === null || !isInitialized) {
      if (session !== null) this.#lose(session, NEVER_BEGAN);
      trace.add(name, `initialize failed with ${fetched.status} ${fetched.end}`);
      await sleep(clock, BACKOFF_MS);
      return null;
    }
    trace.add(name, `has session ${session.record.id.slice(-40)}`);
    const told = await this.#postUntilTaken(session, chance, { jsonrpc: '2.0', method: 'notifications/initialized' });
    if (!told) return null;
    void this.#listen(session);
    return session;
  }

  #lose(session: Session, how: string): void {
    if (session.over.signal.aborted) return;
    this.#options.trace.add(this.#options.name, `lost its session: ${how}`);
    session.record.lost = how;
    session.over.abort();
  }

  /** The standalone stream, for as long as the session lives. */
  async #listen(session: Session): Promise<void> {
    const { clock, seed, name } = this.#options;
    const chance = createChance(seed, `${name} listens ${this.#sessions.length}`);
    let cursor: string | null = null;
    while (!session.over.signal.aborted && !this.#options.isWindingDown()) {
      let leave = (): void => undefined;
      const onOver = (): void => leave();
      session.over.signal.addEventListener('abort', onOver, { once: true });
      const fetched: Fetched = await this.#wire.get(session, cursor, chance, {
        onEvent: (event) => {
          cursor = event.id;
          this.#receive(session, event);
          return !this.#options.isWindingDown();
        },
        onOpen: (way) => {
          leave = way;
        },
      });
      session.over.signal.removeEventListener('abort', onOver);
      if (fetched.status === 404) this.#lose(session, 'GET of the standalone stream: 404');
      // The stream is over: a new one begins.
      if (fetched.status === 204 || (fetched.status === 200 && fetched.end === 'ended' && chance.happens(0.1)))
        cursor = null;
      await sleep(clock, fetched.retryMs ?? BACKOFF_MS);
    }
  }

  // Calls.

  #take(session: Session, step: ClientStep): void {
    const { seed, name } = this.#options;
    const chance = createChance(seed, `${name} step ${step.draw}`);
    switch (step.do) {
      case 'delete':
        void this.#delete(session, chance);
        return;
      case 'forge':
        void this.#forge(session, chance);
        return;
      case 'call': {
        const calls = step.tools.map((tool, index) => this.#makeCall(session, tool, `${step.draw}-${index}`, chance));
        void this.#makeGroup(session, calls, chance, {});
        if (step.isCancelled) void this.#cancelSoon(session, calls[0]!, chance);
      }
    }
  }

  #makeCall(session: Session, tool: string, number: string, chance: Chance): CallRecord {
    const { name, clock, records } = this.#options;
    const call: CallRecord = {
      token: `${name}-${number}`,
      tool,
      session: session.record.id,
      requestId: chance.happens(0.5)
        ? Number(number.replace('p-', String(FIRST_OWN_ID / 10)).replace('-', '0'))
        : `${name}-${number}`,
      startedMs: clock.monoMs(),
      cancelled: false,
      endedMs: null,
      outcome: null,
      answers: [],
    };
    records.calls.push(call);
    session.calls.set(idKey(call.requestId), call);
    return call;
  }

  #bodyOf(call: CallRecord, chance: Chance, options: { readonly echo?: boolean }): object {
    if (call.tool === 'list' || call.tool === 'ping')
      return { jsonrpc: '2.0', id: call.requestId, method: call.tool === 'list' ? 'tools/list' : 'ping' };
    return {
      jsonrpc: '2.0',
      id: call.requestId,
      method: 'tools/call',
      params: {
        name: call.tool,
        arguments: {
          token: call.token,
          steps: chance.whole(1, 6),
          intervalMs:
            options.echo === true ? 0 : chance.happens(0.1) ? chance.between(200, 800) : chance.between(0, 60),
          ...(chance.happens(0.1) ? { pad: 'x'.repeat(chance.whole(100, 3000)) } : {}),
        },
        _meta: { progressToken: call.token },
      },
    };
  }

  /** One POST with one call, or a batch; resolves when all of them have ended. */
  async #makeGroup(
    session: Session,
    calls: readonly CallRecord[],
    chance: Chance,
    options: { readonly echo?: boolean },
  ): Promise<void> {
    this.#running++;
    const bodies = calls.map((call) => this.#bodyOf(call, chance, options));
    const body = JSON.stringify(bodies.length === 1 ? bodies[0] : bodies);
    try {
      await this.#follow(session, calls, body, chance);
    } finally {
      this.#running--;
    }
  }

  async #follow(session: Session, calls: readonly CallRecord[], body: string, chance: Chance): Promise<void> {
    const { clock, planned } = this.#options;
    const asks = calls.map((call) => call.requestId);
    const isDone = (): boolean => calls.every((call) => call.outcome !== null);
    const end = (outcome: CallOutcome): void => {
      for (const call of calls) this.#end(call, outcome);
    };
    const lost = (how: string): void => {
      this.#lose(session, how);
      end({ kind: 'session-lost' });
    };
    let cursor: string | null = null;
    const onEvent = (event: SseEvent): boolean => {
      if (event.hasId) cursor = event.id;
      this.#receive(session, event);
      this.#endUnnamed(calls, event.data);
      // Clients differ: some read on to the end of the stream, some leave with the answer.
      return !isDone() || chance.happens(0.5);
    };
    let isPosted = false;
    while (!isDone()) {
      if (session.over.signal.aborted) {
        end({ kind: 'session-lost' });
        return;
      }
      if (!isPosted || cursor === null) {
        const fetched = await this.#wire.post(session, session.record.server, body, asks, chance, { onEvent });
        if (isDone()) return;
        if (fetched.status === 404) return lost('POST of a call: 404');
        if (fetched.status === 200) isPosted = true;
        else if (fetched.status === 503 || fetched.end === 'refused') {
          await sleep(clock, BACKOFF_MS * chance.between(0.5, 1.5));
          continue;
        } else if (fetched.status !== null && fetched.status !== 504) {
          end({ kind: 'error', code: `HTTP ${fetched.status}`, mayHaveRun: null, json: fetched.body });
          return;
        }
        if (cursor === null) {
          // Nobody knows whether it runs. The same request under the same id is safe; not every client does that.
          if (calls.length > 1 || !chance.happens(planned.postAgain)) {
            end({ kind: 'given-up', why: `POST: ${fetched.status} ${fetched.end}` });
            return;
          }
          isPosted = false;
        }
        await sleep(clock, fetched.retryMs ?? BACKOFF_MS);
        continue;
      }
      const from: string = this.#oddCursor(session, cursor, chance);
      if (chance.happens(planned.oddResume))
        void this.#wire.get(session, from, chance, { onEvent: (event) => this.#glance(session, event) });
      const fetched = await this.#wire.get(session, from, chance, { onEvent });
      if (isDone()) return;
      if (fetched.status === 404) return lost('GET of a call: 404');
      if (fetched.status === 204) {
        // The stream is over, and its answer was seen or never will be.
        if (calls.every((call) => call.cancelled)) end({ kind: 'cancelled' });
        else if (from === cursor)
          end({ kind: 'error', code: 'NO_ANSWER', mayHaveRun: null, json: 'the stream ended without an answer' });
      } else if (fetched.status === 400) end({ kind: 'error', code: 'HTTP 400', mayHaveRun: null, json: fetched.body });
      await sleep(clock, (fetched.retryMs ?? BACKOFF_MS) * chance.between(0.8, 1.2));
    }
  }

  /** An error without an id, as the last word on the stream of these calls, is about what is still open of them. */
  #endUnnamed(calls: readonly CallRecord[], json: string): void {
    if (json === '') return;
    const { id, error } = JSON.parse(json) as { id?: unknown; error?: { data?: Record<string, unknown> } };
    if (id !== null || error?.data?.['code'] !== 'OWNER_LOST') return;
    for (const call of calls) this.#end(call, { kind: 'error', code: 'OWNER_LOST', mayHaveRun: true, json });
  }

  /** Now and then a cursor from before: everything behind it comes again, the same. */
  #oddCursor(session: Session, cursor: string, chance: Chance): string {
    const { planned } = this.#options;
    if (!chance.happens(planned.oddResume)) return cursor;
    const known = session.streams.get(streamOfCursor(cursor))?.cursors ?? [];
    return known.length === 0 ? cursor : chance.pick(known).id;
  }

  #glance(session: Session, event: SseEvent): boolean {
    this.#receive(session, event);
    return true;
  }

  #end(call: CallRecord, outcome: CallOutcome): void {
    if (call.outcome !== null) return;
    call.outcome = outcome;
    call.endedMs = this.#options.clock.monoMs();
    const what =
      outcome.kind === 'error' ? `${outcome.kind} ${outcome.code} mayHaveRun=${outcome.mayHaveRun}` : outcome.kind;
    this.#options.trace.add(this.#options.name, `call ${call.token} ${call.tool} ends: ${what}`);
  }

  async #cancelSoon(session: Session, call: CallRecord, chance: Chance): Promise<void> {
    const { clock } = this.#options;
    await sleep(clock, chance.between(0, 100));
    if (call.outcome !== null) return;
    call.cancelled = true;
    await this.#postUntilTaken(session, chance, {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: call.requestId },
    });
  }

  async #delete(session: Session, chance: Chance): Promise<void> {
    const record = this.#wire.record(session, 'DELETE', [], null, chance);
    session.record.deleted = true;
    const request = this.#wire.wire('DELETE', session, session.record.server, '', null);
    const fetched = await this.#wire.fetch(record, request, chance, {});
    if (fetched.status === 204 || fetched.status === 404) this.#lose(session, `DELETE: ${fetched.status}`);
  }

  /** A cursor that no server gave for this session: answered with 400, or it ends this session at most. */
  async #forge(session: Session, chance: Chance): Promise<void> {
    const known = [...session.streams.values()].flatMap(({ cursors }) => cursors);
    if (known.length === 0) return;
    const honest = chance.pick(known).id;
    const others = this.#sessions.filter((other) => other !== session && other.streams.size > 0);
    const foreign = others.length === 0 ? null : [...chance.pick(others).streams.values()][0]!.cursors[0]!.id;
    const { kind, cursor } = forgeCursor(honest, foreign, chance);
    if (cursor === honest && kind !== 'session') return;
    if (kind === 'offset' || kind === 'digit' || kind === 'epoch') session.record.forged = true;
    const record = this.#wire.record(session, 'GET', [], cursor, chance);
    record.isHonest = false;
    record.forgery = kind;
    const wire = this.#wire.wire('GET', session, session.record.server, '', cursor);
    const id = session.record.id;
    const last = id.at(-2) === 'A' ? 'B' : 'A';
    const headers = { ...wire.headers, 'Mcp-Session-Id': `${id.slice(0, -2)}${last}${id.slice(-1)}` };
    const fetched = await this.#wire.fetch(record, kind === 'session' ? { ...wire, headers } : wire, chance, {});
    record.refusal = refusalOf(fetched.body);
  }

  // What comes.

  #receive(session: Session, event: SseEvent): void {
    if (event.hasId) this.#remember(session, event.id);
    if (event.data === '') return;
    const { trace, name } = this.#options;
    trace.add(name, `receives ${event.id} ${event.data.slice(0, 200)}`);
    const message = JSON.parse(event.data) as Record<string, unknown>;
    const { id, method } = message;
    if (typeof method === 'string') {
      if (id !== undefined) void this.#answer(session, id, message);
      return;
    }
    const call = session.calls.get(idKey(id));
    const error = message['error'] as { data?: Record<string, unknown> } | undefined;
    const data = error?.data;
    if (call !== undefined) {
      call.answers.push(event.data);
      if (error === undefined) this.#end(call, { kind: 'result', json: event.data });
      else {
        const mayHaveRun = typeof data?.['mayHaveRun'] === 'boolean' ? data['mayHaveRun'] : null;
        this.#end(call, { kind: 'error', code: String(data?.['code']), mayHaveRun, json: event.data });
      }
    }
    if (data?.['retry'] === 'reinitialize') this.#lose(session, `in-band ${String(data['reason'] ?? data['code'])}`);
  }

  #remember(session: Session, id: string): void {
    // An error of the gateway's own is no place to go on from.
    if (id.split('.')[4] === 'end') return;
    const label = streamOfCursor(id);
    const stream = session.streams.get(label) ?? { cursors: [] };
    session.streams.set(label, stream);
    if (stream.cursors.at(-1)?.id === id) return;
    stream.cursors.push({ id });
    if (stream.cursors.length > MAX_CURSORS) stream.cursors.splice(1, 1);
  }

  /** A request of the server is answered once, on any gateway. */
  async #answer(session: Session, id: unknown, message: Record<string, unknown>): Promise<void> {
    if (session.answered.has(idKey(id))) return;
    session.answered.add(idKey(id));
    const { clock, seed, name } = this.#options;
    const chance = createChance(seed, `${name} answers ${idKey(id)}`);
    await sleep(clock, chance.between(0, 100));
    const params = message['params'] as { message?: string } | undefined;
    const result = { action: 'accept', content: { echo: params?.message?.split(' ')[1] ?? '' } };
    await this.#postUntilTaken(session, chance, { jsonrpc: '2.0', id, result });
  }

  // Exchanges.

  async #postUntilTaken(session: Session, chance: Chance, message: object): Promise<boolean> {
    const { clock } = this.#options;
    while (!session.over.signal.aborted) {
      const fetched = await this.#wire.post(session, session.record.server, JSON.stringify(message), [], chance, {});
      if (fetched.status === 202) return true;
      if (fetched.status === 404) this.#lose(session, 'POST: 404');
      await sleep(clock, BACKOFF_MS * chance.between(0.5, 1.5));
    }
    return false;
  }

  async #reread(session: Session, gateway: string, cursor: string): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      const record = this.#wire.record(session, 'GET', [], cursor, this.#chance);
      record.gateway = gateway;
      const wire = this.#wire.wire('GET', session, session.record.server, '', cursor);
      const { status } = await this.#wire.fetch(record, wire, this.#chance, {});
      if (status !== null && status !== 503) {
        record.isReread = true;
        return;
      }
      await sleep(this.#options.clock, BACKOFF_MS);
    }
  }
}
