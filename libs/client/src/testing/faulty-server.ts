/**
 * An MCP server over Streamable HTTP that lies on command: it does exactly one named misbehaviour, at a scripted moment,
 * and is honest otherwise. For tests of clients; Node only. SPEC: LIAR-*.
 */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerRequest } from './answer-request.ts';
import { DIALECTS, FAULT_TABLE } from './fault-table.ts';
import type { Dialect, FaultName } from './fault-table.ts';
import { misbehaviourOf } from './misbehaviours.ts';
import { Numbers } from './numbering.ts';
import type { FaultMoment, LoggedRequest, SentEvent, World } from './world.ts';

export interface FaultyServerOptions {
  /** Default: `throughline`. */
  readonly dialect?: Dialect;
  /** Default: none, an honest server. */
  readonly fault?: FaultName;
  /** Default: after 3 messages on the stream of the first call of the tool `count`. */
  readonly at?: Partial<FaultMoment>;
  /** What clients are told to wait before they come back. Default: 20 ms. */
  readonly retryMs?: number;
  /** Silence after which a comment is sent. Default: 200 ms. */
  readonly keepAliveMs?: number;
}

export interface FaultyServer extends AsyncDisposable {
  /** The endpoint, on 127.0.0.1. */
  readonly url: string;
  /** Every request, in the order they came; the first 10,000 are kept. */
  readonly requests: readonly LoggedRequest[];
  /** Every event with data that was written, lies included, in that order. */
  readonly sent: readonly SentEvent[];
  /** Names of the tools that were run. */
  readonly runs: readonly string[];
  /** When the misbehaviour was last shown, in ms since the server started; `null` before. */
  liedAtMs(): number | null;
  /** Ends every connection. Idempotent. */
  stop(): Promise<void>;
}

/** Throws a `TypeError` for a fault or dialect that is not in the table, and for a moment before the first message. */
export async function startFaultyServer(options: FaultyServerOptions = {}): Promise<FaultyServer> {
  const { dialect = 'throughline', fault, at, retryMs = 20, keepAliveMs = 200 } = options;
  if (!DIALECTS.includes(dialect))
    throw new TypeError(`startFaultyServer: dialect must be one of ${DIALECTS.join(', ')}`);
  if (fault !== undefined && !Object.hasOwn(FAULT_TABLE, fault))
    throw new TypeError(`startFaultyServer: fault ${JSON.stringify(fault)} is not in FAULT_TABLE`);
  const moment: FaultMoment = { stream: 'request', after: 3, ...at };
  if (!Number.isSafeInteger(moment.after) || moment.after < 0)
    throw new TypeError('startFaultyServer: at.after is a number of messages, 0 or more');
  const lie = misbehaviourOf(fault ?? null);
  const startedMs = performance.now();
  const stopping = new AbortController();
  const world: World = {
    dialect,
    fault: fault ?? null,
    moment,
    retryMs,
    keepAliveMs,
    form: { isCrlf: false, hasBom: false, ...(lie?.place === 'stream' ? lie.form : {}) },
    hasEpoch: dialect !== 'opaque' || fault === 'epoch-changed',
    numbers: new Numbers(dialect),
    sessions: new Map(),
    requests: [],
    sent: [],
    runs: [],
    impostorUrl: '',
    hit: null,
    shown: 0,
    shownAtMs: null,
    isTokenExpired: false,
    now: () => performance.now() - startedMs,
    stopping: stopping.signal,
  };
  const servers = [await listenOn(world, 'server')];
  const [main] = servers;
  if (main === undefined) throw new Error('no server was started');
  if (fault === 'redirect-other-origin') {
    const impostor = await listenOn(world, 'impostor');
    servers.push(impostor);
    world.impostorUrl = urlOf(impostor);
  }
  const stop = async (): Promise<void> => {
    stopping.abort('the faulty server stops');
    await Promise.all(servers.map(closeServer));
  };
  return {
    url: urlOf(main),
    requests: world.requests,
    sent: world.sent,
    runs: world.runs,
    liedAtMs: () => world.shownAtMs,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function listenOn(world: World, origin: LoggedRequest['origin']): Promise<Server> {
  const server = createServer({ noDelay: true }, (request, response) => {
    answerRequest(world, origin, request, response).catch(() => response.destroy());
  });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => resolve(undefined));
  await promise;
  return server;
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  server.close(() => resolve(undefined));
  server.closeAllConnections();
  await promise;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}
