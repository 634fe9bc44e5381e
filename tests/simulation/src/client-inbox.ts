/** What a simulated client does with what comes on its streams: it ends calls, loses sessions, and answers the server. */
import { sleep } from '@throughline/log';
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import { idKey, rememberCursor } from './client-session.ts';
import type { ClientSession } from './client-session.ts';
import { BACKOFF_MS } from './client-wire.ts';
import type { ClientWire, SimClientOptions } from './client-wire.ts';
import type { CallOutcome, CallRecord } from './records-of-run.ts';
import type { SseEvent } from './sse-parser.ts';

export class ClientInbox {
  readonly #options: SimClientOptions;
  readonly #wire: ClientWire;

  constructor(options: SimClientOptions, wire: ClientWire) {
    this.#options = options;
    this.#wire = wire;
  }

  receive(session: ClientSession, event: SseEvent): void {
    if (event.hasId) rememberCursor(session, event.id);
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
      if (error === undefined) this.end(call, { kind: 'result', json: event.data });
      else {
        const mayHaveRun = typeof data?.['mayHaveRun'] === 'boolean' ? data['mayHaveRun'] : null;
        this.end(call, { kind: 'error', code: String(data?.['code']), mayHaveRun, json: event.data });
      }
    }
    if (data?.['retry'] === 'reinitialize') this.lose(session, `in-band ${String(data['reason'] ?? data['code'])}`);
  }

  /** An error without an id, as the last word on the stream of these calls, is about what is still open of them. */
  endUnnamed(calls: readonly CallRecord[], json: string): void {
    if (json === '') return;
    const { id, error } = JSON.parse(json) as { id?: unknown; error?: { data?: Record<string, unknown> } };
    if (id !== null || error?.data?.['code'] !== 'OWNER_LOST') return;
    for (const call of calls) this.end(call, { kind: 'error', code: 'OWNER_LOST', mayHaveRun: true, json });
  }

  end(call: CallRecord, outcome: CallOutcome): void {
    if (call.outcome !== null) return;
    call.outcome = outcome;
    call.endedMs = this.#options.clock.monoMs();
    const what =
      outcome.kind === 'error' ? `${outcome.kind} ${outcome.code} mayHaveRun=${outcome.mayHaveRun}` : outcome.kind;
    this.#options.trace.add(this.#options.name, `call ${call.token} ${call.tool} ends: ${what}`);
  }

  lose(session: ClientSession, how: string): void {
    if (session.over.signal.aborted) return;
    this.#options.trace.add(this.#options.name, `lost its session: ${how}`);
    session.record.lost = how;
    session.over.abort();
  }

  /** Posts until a gateway takes it, as long as the session lives. */
  async postUntilTaken(session: ClientSession, chance: Chance, message: object): Promise<boolean> {
    const { clock } = this.#options;
    while (!session.over.signal.aborted) {
      const fetched = await this.#wire.post(session, session.record.server, JSON.stringify(message), [], chance, {});
      if (fetched.status === 202) return true;
      if (fetched.status === 404) this.lose(session, 'POST: 404');
      await sleep(clock, BACKOFF_MS * chance.between(0.5, 1.5));
    }
    return false;
  }

  /** A request of the server is answered once, on any gateway. */
  async #answer(session: ClientSession, id: unknown, message: Record<string, unknown>): Promise<void> {
    if (session.answered.has(idKey(id))) return;
    session.answered.add(idKey(id));
    const { clock, seed, name } = this.#options;
    const chance = createChance(seed, `${name} answers ${idKey(id)}`);
    await sleep(clock, chance.between(0, 100));
    const params = message['params'] as { message?: string } | undefined;
    const result = { action: 'accept', content: { echo: params?.message?.split(' ')[1] ?? '' } };
    await this.postUntilTaken(session, chance, { jsonrpc: '2.0', id, result });
  }
}
