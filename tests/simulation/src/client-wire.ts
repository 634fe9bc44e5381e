/** The exchanges of one simulated client: each is written down with what came of it. */
import type { Clock } from '@throughline/log';
import type { Chance } from './chance.ts';
import { fetchOverWire } from './fetch.ts';
import type { Fetched, FetchOptions } from './fetch.ts';
import type { Network, WireRequest } from './network.ts';
import type { PlannedClient } from './plan.ts';
import type { CallRecord, ExchangeRecord, GoneCheck, SessionRecordOfRun } from './records-of-run.ts';
import type { Trace } from './trace.ts';

export interface SimClientOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly network: Network;
  readonly trace: Trace;
  readonly gateways: readonly string[];
  /** Its chance: of the client itself, and of each of its steps. */
  readonly seed: number;
  readonly planned: PlannedClient;
  readonly records: {
    readonly sessions: SessionRecordOfRun[];
    readonly exchanges: ExchangeRecord[];
    readonly calls: CallRecord[];
    readonly gone: GoneCheck[];
  };
  /** True once no new calls are to be made. */
  isWindingDown(): boolean;
}

/** A session as its exchanges name it. */
interface KnownSession {
  readonly record: SessionRecordOfRun;
}

const PATIENCE_MS = 4000;
const ACCEPT = 'application/json, text/event-stream';

/** Before it tries again, where nobody said when. */
export const BACKOFF_MS = 150;

export class ClientWire {
  readonly #options: SimClientOptions;

  constructor(options: SimClientOptions) {
    this.#options = options;
  }

  post(
    session: KnownSession | null,
    server: string,
    body: string,
    asks: ExchangeRecord['asks'],
    chance: Chance,
    handlers: Pick<FetchOptions, 'onEvent' | 'onHead'>,
  ): Promise<Fetched> {
    return this.fetch(
      this.record(session, 'POST', asks, null, chance),
      this.wire('POST', session, server, body, null),
      chance,
      handlers,
    );
  }

  get(
    session: KnownSession,
    cursor: string | null,
    chance: Chance,
    handlers: Pick<FetchOptions, 'onEvent' | 'onHead' | 'onOpen'>,
  ): Promise<Fetched> {
    const record = this.record(session, 'GET', [], cursor, chance);
    return this.fetch(record, this.wire('GET', session, session.record.server, '', cursor), chance, handlers);
  }

  record(
    session: KnownSession | null,
    method: ExchangeRecord['method'],
    asks: ExchangeRecord['asks'],
    lastEventId: string | null,
    chance: Chance,
  ): ExchangeRecord {
    const { records, gateways } = this.#options;
    const record: ExchangeRecord = {
      number: records.exchanges.length,
      session: session?.record.id ?? null,
      method,
      gateway: chance.pick(gateways),
      lastEventId,
      sentMs: this.#options.clock.monoMs(),
      headMs: null,
      body: '',
      asks,
      isHonest: true,
      isReread: false,
      status: null,
      liveAt: null,
      liveMs: null,
      receipts: [],
      end: null,
    };
    records.exchanges.push(record);
    return record;
  }

  wire(
    method: WireRequest['method'],
    session: KnownSession | null,
    server: string,
    body: string,
    cursor: string | null,
  ): WireRequest {
    return {
      method,
      server,
      body,
      headers: {
        Host: '127.0.0.1',
        Accept: method === 'GET' ? 'text/event-stream' : ACCEPT,
        'Content-Type': 'application/json',
        ...(session === null
          ? {}
          : { 'Mcp-Session-Id': session.record.id, 'MCP-Protocol-Version': session.record.version }),
        ...(cursor === null ? {} : { 'Last-Event-ID': cursor }),
      },
    };
  }

  async fetch(
    record: ExchangeRecord,
    request: WireRequest,
    chance: Chance,
    handlers: Pick<FetchOptions, 'onEvent' | 'onHead' | 'onOpen'>,
  ): Promise<Fetched> {
    const { network, clock, planned, trace, name } = this.#options;
    const isSlow = chance.happens(planned.slowRead);
    record.body = request.body;
    const fetched = await fetchOverWire({
      network,
      clock,
      address: record.gateway,
      request,
      record,
      patienceMs: PATIENCE_MS,
      ...(isSlow ? { holdUntilMs: clock.monoMs() + chance.between(100, 2500) } : {}),
      ...handlers,
      onHead: (status, headers) => {
        record.session ??= headers['Mcp-Session-Id'] ?? null;
        handlers.onHead?.(status, headers);
      },
    });
    const cursor = record.lastEventId === null ? '' : ` after ${record.lastEventId}`;
    trace.add(
      name,
      `${request.method} ${record.gateway}${cursor}: ${fetched.status} ${fetched.end} ${fetched.body.slice(0, 300)}`,
    );
    return fetched;
  }
}
