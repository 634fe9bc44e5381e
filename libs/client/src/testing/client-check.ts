/**
 * Runs any client through the rows of the table, each against a server of its own, and says what it made of each. Knows
 * no test framework and no SDK. SPEC: LIAR-CHECK, LIAR-VERDICT.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DIALECTS, FAULT_NAMES, FAULT_TABLE, rightVerdicts } from './fault-table.ts';
import type { Dialect, FaultName, Verdict } from './fault-table.ts';
import { startFaultyServer } from './faulty-server.ts';
import type { FaultyServer } from './faulty-server.ts';
import { judgeRun } from './judge-run.ts';
import type { CallOutcome } from './judge-run.ts';

/** What a client under test tells as it happens. */
export interface CheckReports {
  /** The `data` of each `notifications/message` that the application's handler got. */
  event(data: unknown): void;
  /**
   * A stream or session was refused out loud. A call that rejects with `data.type` = `ResumptionRejected` says so by
   * itself.
   */
  refused(detail?: unknown): void;
  /** What came cannot be proved to go on where the stream stopped, and is delivered all the same. */
  unproven(detail?: unknown): void;
  /** A stream is given up for another reason: the application is told that nothing more comes, or not without other credentials. */
  gaveUp(detail?: unknown): void;
}

export interface ClientUnderTest {
  /** The text of the result. Rejects with the client's own error. */
  callTool(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
  close(): PromiseLike<void> | void;
}

/** Connects a client: `initialize` is done, and the standalone stream asked for. */
export type ConnectClient = (url: string, reports: CheckReports) => Promise<ClientUnderTest>;

export interface ClientCheckOptions {
  /** Default: all. */
  readonly faults?: readonly FaultName[];
  /** Default: all. */
  readonly dialects?: readonly Dialect[];
  /**
   * On which stream the events run and the faults happen. On the standalone stream rows that concern calls are left
   * out. Default: `request`.
   */
  readonly stream?: 'request' | 'standalone';
  /**
   * Milliseconds until a call hangs. The client's own limits must be below: for silence (the server sends a keepalive
   * every 200 ms), for tries to reconnect, for `Retry-After: 1`. Default: 5,000.
   */
  readonly boundMs?: number;
  /** Runs at the same time. Default: 8. */
  readonly atOnce?: number;
}

export interface CheckedRun {
  readonly fault: FaultName;
  readonly dialect: Dialect;
  readonly verdict: Verdict;
  /** Whether a client that is not fooled may give this verdict. */
  readonly isRight: boolean;
  /** Whether the server came to show the fault. */
  readonly wasShown: boolean;
  readonly call: CallOutcome;
  readonly delivered: readonly unknown[];
  /** Whether a later call of the same client was answered, within the bound. */
  readonly isUsableAfter: boolean;
  /** How many requests the client made in all. */
  readonly requests: number;
}

export interface ClientCheckReport {
  readonly runs: readonly CheckedRun[];
  /** Those that are not right. */
  readonly wrong: readonly CheckedRun[];
}

const EVENTS = 6;
const AFTER = 3;
/** For what is still on its way when a call has ended: handlers of events may run after the result is there. */
const LATE_MS = 1000;
const GRACE_MS = 100;
const POLL_MS = 10;
const CLOSE_MS = 2000;

/** Resolves when all rows were run. Never rejects: a client that does not connect has `failed` verdicts. */
export async function runClientCheck(
  connect: ConnectClient,
  options: ClientCheckOptions = {},
): Promise<ClientCheckReport> {
  const { faults = FAULT_NAMES, dialects = DIALECTS, stream = 'request', boundMs = 5000, atOnce = 8 } = options;
  const todo = dialects.flatMap((dialect) =>
    faults.filter((fault) => stream === 'request' || concernsStandalone(fault)).map((fault) => ({ fault, dialect })),
  );
  const runs: CheckedRun[] = new Array(todo.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < todo.length; index = next++) {
      const { fault, dialect } = todo[index]!;
      runs[index] = await runRow(connect, { fault, dialect, stream, boundMs });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { runs, wrong: runs.filter(({ isRight }) => !isRight) };
}

/** They ask what becomes of a call that waits. */
const OF_CALLS: readonly FaultName[] = ['answer-on-wrong-stream', 'empty-200', 'status-204', 'status-405'];

function concernsStandalone(fault: FaultName): boolean {
  return FAULT_TABLE[fault].place !== 'post' && !OF_CALLS.includes(fault);
}

interface Row {
  readonly fault: FaultName;
  readonly dialect: Dialect;
  readonly stream: 'request' | 'standalone';
  readonly boundMs: number;
}

async function runRow(connect: ConnectClient, row: Row): Promise<CheckedRun> {
  const { fault, dialect, stream, boundMs } = row;
  await using server = await startFaultyServer({ dialect, fault, at: { stream, after: AFTER } });
  const said = { refused: false, unproven: false, gaveUp: false };
  const delivered: unknown[] = [];
  const reports: CheckReports = {
    event: (data) => void delivered.push(data),
    refused: () => void (said.refused = true),
    unproven: () => void (said.unproven = true),
    gaveUp: () => void (said.gaveUp = true),
  };
  let client: ClientUnderTest | null = null;
  const call = async (name: string, args: Readonly<Record<string, unknown>>): Promise<CallOutcome> => {
    const connected = client;
    if (connected === null) return { kind: 'error', error: 'the client did not connect' };
    return await settleWithin(boundMs, () => connected.callTool(name, args), said);
  };
  try {
    const connecting = await settleWithin(
      boundMs,
      async () => ((client = await connect(server.url, reports)), ''),
      said,
    );
    const isRequest = stream === 'request';
    const outcome =
      connecting.kind === 'result' ? await call(isRequest ? 'count' : 'announce', { to: EVENTS }) : connecting;
    const isOver = (): boolean => delivered.length >= EVENTS || said.refused || said.gaveUp;
    await waitFor(isOver, isRequest ? (outcome.kind === 'result' ? LATE_MS : 0) : boundMs);
    await pause(GRACE_MS);
    const verdict = judgeRun({
      fault,
      to: EVENTS,
      call: isRequest || outcome.kind !== 'result' ? outcome : null,
      delivered,
      saidRefused: said.refused,
      saidUnproven: said.unproven,
      saidGaveUp: said.gaveUp,
      runs: server.runs.filter((name) => name === 'count' || name === 'announce').length,
      cameBackAfterMs: cameBackAfterMs(server),
    });
    const wasShown = server.liedAtMs() !== null;
    const later = await call('echo', { text: 'still here' });
    return {
      fault,
      dialect,
      verdict,
      isRight: wasShown && rightVerdicts(fault, dialect).includes(verdict),
      wasShown,
      call: outcome,
      delivered: [...delivered],
      isUsableAfter: later.kind === 'result' && later.text === 'still here',
      requests: server.requests.length,
    };
  } finally {
    // A client that does not close must not hold up the others.
    const connected = client as ClientUnderTest | null;
    if (connected !== null) await settleWithin(CLOSE_MS, async () => (await connected.close(), ''), said);
  }
}

async function settleWithin(
  boundMs: number,
  work: () => Promise<string>,
  said: { refused: boolean },
): Promise<CallOutcome> {
  const { promise, resolve } = Promise.withResolvers<CallOutcome>();
  const timer = setTimeout(() => resolve({ kind: 'hangs' }), boundMs);
  work().then(
    (text) => resolve({ kind: 'result', text }),
    (error: unknown) => {
      if ((error as { data?: { type?: unknown } } | null)?.data?.type === 'ResumptionRejected') said.refused = true;
      resolve({ kind: 'error', error: String(error) });
    },
  );
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

async function waitFor(isOver: () => boolean, boundMs: number): Promise<void> {
  const until = performance.now() + boundMs;
  while (!isOver() && performance.now() < until) await pause(POLL_MS);
}

/** From the misbehaviour to the client's next try of the same; `null` without one. */
function cameBackAfterMs(server: FaultyServer): number | null {
  const liedAtMs = server.liedAtMs();
  if (liedAtMs === null) return null;
  const back = server.requests.find(
    ({ atMs, lastEventId, rpcMethod }) => atMs > liedAtMs && (lastEventId !== undefined || rpcMethod === 'tools/call'),
  );
  return back === undefined ? null : back.atMs - liedAtMs;
}
