/**
 * A simulated MCP client: speaks the wire, keeps cursors, resumes on any gateway, starts anew when its session is gone,
 * and writes down everything it receives. It believes nothing: what it was told is judged after the run.
 */
import { sleep } from '@throughline/log';
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import { checkGone, rereadAll } from './client-checks.ts';
import type { CheckDeps } from './client-checks.ts';
import { drawBody, drawCall, FIRST_OWN_ID } from './client-choices.ts';
import { ClientInbox } from './client-inbox.ts';
import { newSession } from './client-session.ts';
import type { ClientSession } from './client-session.ts';
import { BACKOFF_MS, ClientWire } from './client-wire.ts';
import type { SimClientOptions } from './client-wire.ts';
import type { Fetched } from './fetch.ts';
import { followCalls } from './follow-calls.ts';
import type { FollowDeps } from './follow-calls.ts';
import { forgeCursor, refusalOf } from './forge-cursor.ts';
import type { ClientStep } from './plan.ts';
import type { CallRecord } from './records-of-run.ts';
import type { SseEvent } from './sse-parser.ts';

/** How a session is lost that was never answered to. */
export const NEVER_BEGAN = 'initialize was not answered';

export class SimClient {
  readonly #options: SimClientOptions;
  readonly #wire: ClientWire;
  readonly #inbox: ClientInbox;
  readonly #follow: FollowDeps;
  readonly #chance: Chance;
  readonly #sessions: ClientSession[] = [];
  #session: ClientSession | null = null;
  #running = 0;
  #counter = 0;
  #isFinished = false;

  constructor(options: SimClientOptions) {
    this.#options = options;
    this.#wire = new ClientWire(options);
    this.#inbox = new ClientInbox(options, this.#wire);
    this.#follow = { options, wire: this.#wire, inbox: this.#inbox };
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
      let session: ClientSession | null = null;
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
      call = drawCall(this.#options, session, { tool: 'echo', number: `p-${++this.#counter}` }, this.#chance);
      await this.#makeGroup(session, [call], this.#chance, { echo: true });
    }
    return call;
  }

  /** Reads every stream of its living sessions again, from the oldest cursor, on every gateway. */
  rereadAll(): Promise<void> {
    return rereadAll(this.#checks(), this.#sessions);
  }

  /** Sessions that were ended, by this client or by a refusal, must be gone everywhere. */
  checkGone(): Promise<void> {
    return checkGone(this.#checks(), this.#sessions);
  }

  #checks(): CheckDeps {
    return { options: this.#options, wire: this.#wire, chance: this.#chance };
  }

  // Sessions.

  async #ensureSession(): Promise<ClientSession | null> {
    const known = this.#session;
    if (known !== null && !known.over.signal.aborted) return known;
    this.#session = await this.#initialize();
    return this.#session;
  }

  async #initialize(): Promise<ClientSession | null> {
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
    const found: { session: ClientSession | null } = { session: null };
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
      found.session = newSession(record);
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
      if (session !== null) this.#inbox.lose(session, NEVER_BEGAN);
      trace.add(name, `initialize failed with ${fetched.status} ${fetched.end}`);
      await sleep(clock, BACKOFF_MS);
      return null;
    }
    trace.add(name, `has session ${session.record.id.slice(-40)}`);
    const told = await this.#inbox.postUntilTaken(session, chance, {
      jsonrpc: '2.0',
      method: 'notifications/initialized',
    });
    if (!told) return null;
    void this.#listen(session);
    return session;
  }

  /** The standalone stream, for as long as the session lives. */
  async #listen(session: ClientSession): Promise<void> {
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
          this.#inbox.receive(session, event);
          return !this.#options.isWindingDown();
        },
        onOpen: (way) => {
          leave = way;
        },
      });
      session.over.signal.removeEventListener('abort', onOver);
      if (fetched.status === 404) this.#inbox.lose(session, 'GET of the standalone stream: 404');
      // The stream is over: a new one begins.
      if (fetched.status === 204 || (fetched.status === 200 && fetched.end === 'ended' && chance.happens(0.1)))
        cursor = null;
      await sleep(clock, fetched.retryMs ?? BACKOFF_MS);
    }
  }

  // Calls.

  #take(session: ClientSession, step: ClientStep): void {
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
        const calls = step.tools.map((tool, index) =>
          drawCall(this.#options, session, { tool, number: `${step.draw}-${index}` }, chance),
        );
        void this.#makeGroup(session, calls, chance, {});
        if (step.isCancelled) void this.#cancelSoon(session, calls[0]!, chance);
      }
    }
  }

  /** One POST with one call, or a batch; resolves when all of them have ended. */
  async #makeGroup(
    session: ClientSession,
    calls: readonly CallRecord[],
    chance: Chance,
    options: { readonly echo?: boolean },
  ): Promise<void> {
    this.#running++;
    const bodies = calls.map((call) => drawBody(call, chance, options));
    const body = JSON.stringify(bodies.length === 1 ? bodies[0] : bodies);
    try {
      await followCalls(this.#follow, session, { calls, body }, chance);
    } finally {
      this.#running--;
    }
  }

  async #cancelSoon(session: ClientSession, call: CallRecord, chance: Chance): Promise<void> {
    const { clock } = this.#options;
    await sleep(clock, chance.between(0, 100));
    if (call.outcome !== null) return;
    call.cancelled = true;
    await this.#inbox.postUntilTaken(session, chance, {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: call.requestId },
    });
  }

  async #delete(session: ClientSession, chance: Chance): Promise<void> {
    const record = this.#wire.record(session, 'DELETE', [], null, chance);
    session.record.deleted = true;
    const request = this.#wire.wire('DELETE', session, session.record.server, '', null);
    const fetched = await this.#wire.fetch(record, request, chance, {});
    if (fetched.status === 204 || fetched.status === 404) this.#inbox.lose(session, `DELETE: ${fetched.status}`);
  }

  /** A cursor that no server gave for this session: answered with 400, or it ends this session at most. */
  async #forge(session: ClientSession, chance: Chance): Promise<void> {
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
}
