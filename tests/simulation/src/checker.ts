/**
 * The promises, stated over what a run left behind. Each finding names the promise that was broken, and where. Pure.
 * SPEC: SIM-*.
 */
import { decodeText, parseEventId } from '@throughline/protocol';
import type { EventId, LogRecord } from '@throughline/protocol';
import { createHash } from 'node:crypto';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';
import { breaksOfOrder, breaksOfPrefix, missingAppends } from './linearity.ts';
import type { AckedAppend, Delivery } from './linearity.ts';
import { beginsAtStart, readPartition, readStream } from './model.ts';
import type { ModelPartition, ModelSession, ModelStream } from './model.ts';
import type { CallRecord, ExchangeRecord, Forgery, RunRecords, SessionRecordOfRun } from './records-of-run.ts';
import { refusalOf } from './forge-cursor.ts';
import { TOOLS } from './scripted-host.ts';
import { NEVER_BEGAN } from './sim-client.ts';

export interface Finding {
  /** The promise: an id of SPEC.md. */
  readonly rule: string;
  readonly what: string;
}

/** A call may take so long after the last fault. */
export const CALL_BOUND_MS = 40_000;
/** A broken history must lead to a new epoch so soon, whatever else goes wrong at that time. */
const BREAK_BOUND_MS = 30_000;
/** So long may a process that was away at the break, or lags behind it, meet what came in the place of what was lost. */
const LIMBO_MS = 10_000;

export function check(records: RunRecords): readonly Finding[] {
  const findings: Finding[] = [];
  const find = (rule: string, what: string): void => {
    findings.push({ rule, what });
  };
  const judge = new Judge(records, find);
  for (const exchange of records.exchanges) judge.exchange(exchange);
  for (const call of records.calls) judge.call(call);
  judge.runs();
  judge.requests();
  for (const session of records.sessions) judge.session(session);
  judge.breaks();
  judge.linear();
  for (const { session, gateway, status } of records.gone)
    if (status !== 404) find('SIM-GONE', `session ${session} is over, but ${gateway} answers ${status}`);
  const isEvicting = evictsEvents(records) || records.faults.includes('inbound-retention');
  const isBroken = (records.breaks ?? []).length > 0;
  for (const bug of records.bugs) {
    // That retention was faster than a worker that stood still is told loudly, and rightly so; a broken history as well.
    const isDue =
      (isEvicting && bug.includes('were evicted before they were')) ||
      (isBroken && LOUD.some((words) => bug.includes(words)));
    if (!isDue) find('SIM-NO-BUGS', bug);
  }
  return findings;
}

function evictsEvents({ faults }: RunRecords): boolean {
  return faults.includes('retention') || faults.includes('retention-of-checkpoint');
}

/** What a process says, rightly, of a log whose history broke. */
const LOUD = ['the history of the log broke', 'a compacted topic was made anew, or lost its end'];

/** How what was forged is refused, while the session lives. */
const REFUSALS: Readonly<
  Record<Forgery, { readonly answers: readonly number[]; readonly reasons: readonly string[] }>
> = {
  cut: { answers: [400], reasons: ['cursor-malformed'] },
  foreign: { answers: [400], reasons: ['cursor-foreign'] },
  stream: { answers: [400], reasons: ['cursor-foreign'] },
  partition: { answers: [400], reasons: ['cursor-foreign'] },
  epoch: { answers: [200, 404], reasons: ['epoch-mismatch'] },
  offset: { answers: [200, 404], reasons: ['gap', 'beyond-end', 'diverged'] },
  digit: { answers: [200, 404], reasons: ['gap', 'beyond-end', 'diverged'] },
  session: { answers: [404], reasons: [] },
};

class Judge {
  readonly #records: RunRecords;
  readonly #find: (rule: string, what: string) => void;
  /** By epoch and partition: what it held, as it was before each break and at the end. */
  readonly #partitions: ReadonlyMap<string, readonly ModelPartition[]>;
  readonly #seen = new Map<string, { readonly id: string; readonly data: string; readonly where: string }>();
  readonly #streams = new Map<string, readonly ModelStream[]>();
  readonly #harms: ReadonlySet<string>;

  constructor(records: RunRecords, find: (rule: string, what: string) => void) {
    this.#records = records;
    this.#find = find;
    this.#partitions = new Map(
      records.epochs.flatMap((epoch) =>
        records.partitions.map((archive) => {
          const histories = [...(archive.formerEvents ?? []), archive.events];
          const models = histories.map((events) => readPartition({ ...archive, events }, epoch));
          return [`${epoch}/${archive.partition}`, models] as const;
        }),
      ),
    );
    this.#harms = new Set(records.faults.flatMap((name) => (name in FAULTS ? [FAULTS[name as FaultName].harm] : [])));
  }

  /** One connection: numbers, chain, ids and content of what came over it. */
  exchange(exchange: ExchangeRecord): void {
    const { session, receipts, number, status } = exchange;
    const where = `exchange ${number}`;
    if (status !== 200 && receipts.length > 0) this.#find('SIM-REFUSED', `${where}: status ${status}, and events came`);
    if (status === 500) this.#find('SIM-NO-BUGS', `${where}: status 500`);
    if (!exchange.isHonest) {
      this.#forged(exchange, where);
      return;
    }
    if (status === 400) this.#find('SIM-REFUSED', `${where}: an honest request got 400`);
    const resumed = exchange.lastEventId === null ? null : parseEventId(exchange.lastEventId);
    let last: { readonly seq: number; readonly chain: string; readonly stream: string } | null =
      resumed === null || resumed.seq === 'end'
        ? null
        : { seq: resumed.seq, chain: Buffer.from(resumed.chain).toString('hex'), stream: labelOf(resumed) };
    let isRefused = false;
    for (const { id: text, data, atMs } of receipts) {
      const id = parseEventId(text);
      if (session === null || id === null) {
        this.#find('SIM-IDS', `${where}: ${JSON.stringify(text)} is no event id`);
        return;
      }
      const at = `${where} (${exchange.gateway}), ${text}`;
      // A batch gets one error a member.
      if (isRefused && id.seq !== 'end') this.#find('SIM-REFUSED', `${at}: came after the refusal`);
      this.#belongs(session, id, data, at);
      if (id.seq === 'end') {
        isRefused = this.#isRefusal(session, data, at) || isRefused;
        continue;
      }
      const label = labelOf(id);
      if (last !== null && last.stream !== label)
        this.#find('SIM-SESSION', `${at}: one connection, two streams (${last.stream})`);
      last ??= { seq: 0, chain: startChain(session, label), stream: label };
      const chain = Buffer.from(id.chain).toString('hex');
      if (data === '') {
        if (id.seq !== last.seq || chain !== last.chain)
          this.#find('SIM-NO-GAP', `${at}: an id without data says ${id.seq}, but ${last.seq} came last`);
        if (!this.#isLimbo(atMs)) this.#moves(session, id, at);
        continue;
      }
      if (id.seq !== last.seq + 1)
        this.#find(id.seq > last.seq ? 'SIM-NO-GAP' : 'SIM-NO-REPEAT', `${at}: number ${id.seq} after ${last.seq}`);
      if (extendChain(last.chain, data) !== chain)
        this.#find('SIM-CHAIN', `${at}: the chain over what came is another`);
      last = { seq: id.seq, chain, stream: label };
      this.#message(session, id, text, data, at, this.#isLimbo(atMs));
    }
    this.#newest(exchange, where);
    if (exchange.isReread) this.#reread(exchange, resumed, last?.seq ?? 0);
  }

  call(call: CallRecord): void {
    const { token, outcome, endedMs } = call;
    const where = `call ${token} (${call.tool}, ${JSON.stringify(call.requestId)})`;
    if (outcome === null || endedMs === null) {
      this.#find('SIM-ENDS', `${where}: did not end by ${this.#records.endMs.toFixed(0)} ms`);
      return;
    }
    if (endedMs > Math.max(this.#records.quietMs, call.startedMs) + CALL_BOUND_MS)
      this.#find('SIM-ENDS', `${where}: took until ${endedMs.toFixed(0)} ms`);
    const runs = this.#records.runs.filter((run) => run.token === token).length;
    const isTool = call.tool in TOOLS;
    if (outcome.kind === 'result' && isTool) {
      if (runs === 0) this.#find('SIM-ANSWER', `${where}: a result, but it never ran`);
      const text = resultText(outcome.json);
      if (text?.token !== token) this.#find('SIM-ANSWER', `${where}: the result is of ${String(text?.token)}`);
      if ((call.tool === 'ask' || call.tool === 'interview') && !JSON.stringify(text?.answer ?? null).includes(token))
        this.#find('SIM-ANSWER', `${where}: the answer of the client did not reach the tool`);
    }
    if (outcome.kind === 'error') {
      if (outcome.mayHaveRun === false && runs > 0)
        this.#find('SIM-ANSWER', `${where}: said that it did not run, but it ran ${runs} times`);
      if (outcome.code === 'NO_ANSWER') this.#find('SIM-ENDS', `${where}: ${outcome.json}`);
      this.#isAllowed(call, outcome.code, where);
    }
    if (outcome.kind === 'cancelled' && !call.cancelled)
      this.#find('SIM-ENDS', `${where}: ended as cancelled, but nobody cancelled it`);
    // Repetitions get the first one's outcome.
    const results = new Set(call.answers.filter((answer) => !answer.includes('"error"')));
    if (results.size > 1) this.#find('SIM-ONCE', `${where}: two results: ${[...results].join(' and ')}`);
  }

  /** Errors that the faults of the run do not explain. */
  #isAllowed(call: CallRecord, code: string, where: string): void {
    if (call.tool === 'fail' && code === 'TOOL') return;
    // A cancelled request that is posted again finds no outcome.
    if (call.cancelled && code === 'OWNER_LOST') return;
    if (!this.#explains(code, call.session))
      this.#find('SIM-CAUSE', `${where}: ${code}, which no fault of this run explains`);
  }

  /** Whether the faults of the run explain that a client of this session is told so. */
  #explains(code: string, sessionId: string): boolean {
    const { faults, sessions } = this.#records;
    const session = sessions.find(({ id }) => id === sessionId);
    const isAppend = this.#harms.has('append');
    const isOver = session?.deleted === true || session?.lost != null;
    if (session?.forged === true && isOver) return true;
    switch (code) {
      case 'OWNER_LOST':
        // A repetition may come when what the first one was told is no longer held.
        return this.#harms.has('owner') || isAppend || this.#isBroken || evictsEvents(this.#records);
      case 'SERVER_FAILED':
        return faults.includes('instance-failure') || isOver;
      case 'SESSION_ENDED':
      case 'session-ended':
        return isOver;
      case 'GAP':
      case 'gap':
        return evictsEvents(this.#records);
      case 'EPOCH_MISMATCH':
      case 'epoch-mismatch':
        return faults.includes('epoch-rotation') || this.#isBroken;
      case 'LOG_UNAVAILABLE':
        return isAppend || this.#isBroken;
      case 'APPEND_UNKNOWN': {
        // A client that cannot resume hears from a gateway that stops that its call may run.
        const cannotResume = session !== undefined && session.version < '2025-11-25';
        return (
          isAppend ||
          this.#isBroken ||
          faults.includes('slow-append') ||
          (cannotResume && faults.includes('gateway-stop'))
        );
      }
      default:
        return false;
    }
  }

  get #isBroken(): boolean {
    return this.#records.faults.some((name) => name in FAULTS && 'breaks' in FAULTS[name as FaultName]);
  }

  /** Between a break and its proof a reader that lags behind the cut meets what came in the place of what was lost. */
  #isLimbo(ms: number): boolean {
    return (this.#records.breaks ?? []).some(({ atMs }) => ms >= atMs && ms <= atMs + LIMBO_MS);
  }

  /** A broken history leads to one new epoch in bounded time, and nothing else does; afterwards nothing of the former one is told. */
  breaks(): void {
    const { epochs, epochsMs = [], breaks = [], faults, exchanges } = this.#records;
    const moments = [...new Set(breaks.map(({ atMs }) => atMs))];
    for (const { topic, partition, at, atMs, isTold } of breaks)
      if (isTold && !epochsMs.some((madeMs) => madeMs >= Math.floor(atMs) - 1 && madeMs <= atMs + BREAK_BOUND_MS))
        this.#find('SIM-BREAK', `${topic}/${partition} broke at ${at} (${atMs.toFixed(0)} ms), and no epoch followed`);
    if (!faults.includes('epoch-rotation') && epochs.length - 1 > moments.length)
      this.#find('SIM-BREAK', `${epochs.length - 1} new epochs for ${moments.length} breaks`);
    for (const { session, receipts, number } of exchanges) {
      const place = session === null ? -1 : epochs.indexOf(session.split('.')[0] ?? '');
      const overMs = place < 0 ? undefined : epochsMs[place + 1];
      const late =
        overMs === undefined
          ? undefined
          : receipts.find(
              ({ id, data, atMs }) => data !== '' && atMs > overMs + BREAK_BOUND_MS && parseEventId(id)?.seq !== 'end',
            );
      if (late !== undefined) this.#find('SIM-BREAK', `exchange ${number}: ${late.id} came, though its epoch is over`);
    }
  }

  /** What was acknowledged is there once, in the order of time; what came over all connections is one sequence a stream. */
  linear(): void {
    const { exchanges, breaks = [], partitions } = this.#records;
    // Where a history broke, offsets were given again.
    const isWhole = (partition: number): boolean => breaks.every((broken) => broken.partition !== partition);
    const appends: AckedAppend[] = [];
    const deliveries: Delivery[] = [];
    const accepted = new Map<number, string[]>();
    for (const {
      number,
      session,
      method,
      status,
      sentMs,
      headMs,
      liveAt,
      liveMs,
      receipts,
      body,
      isHonest,
    } of exchanges) {
      const [epoch = '', place = ''] = session?.split('.') ?? [];
      const partition = Number(place);
      if (session === null || !isWhole(partition) || !isHonest) continue;
      const who = `exchange ${number}`;
      if (method === 'POST' && status === 202)
        accepted.set(partition, [...(accepted.get(partition) ?? []), ackedText(keyOf(session), body)]);
      const items = receipts.flatMap(({ id: text, data }) => {
        const id = parseEventId(text);
        return id === null || data === '' || id.seq === 'end'
          ? []
          : [{ seq: id.seq, offset: id.offset, text: data, stream: `${session} ${labelOf(id)}` }];
      });
      const [first] = items;
      if (first !== undefined) deliveries.push({ stream: first.stream, items, who });
      const stream = receipts.map(({ id }) => parseEventId(id)?.stream).find((found) => found !== undefined);
      if (headMs === null) continue;
      if (method === 'POST' && stream?.kind === 'request')
        appends.push({ log: `inbound/${partition} of ${epoch}`, position: stream.at, sentMs, ackedMs: headMs, who });
      // Whoever is told the border knows that its attachment stands.
      if (method === 'GET' && liveAt !== null)
        appends.push({
          log: `events/${partition} of ${epoch}`,
          position: liveAt,
          sentMs,
          ackedMs: liveMs ?? Number.POSITIVE_INFINITY,
          who,
        });
    }
    for (const what of [...breaksOfOrder(appends), ...breaksOfPrefix(deliveries)]) this.#find('SIM-LINEAR', what);
    for (const { partition, inbound } of partitions) {
      const held = inbound.map(({ key, value }) =>
        ackedText(key === null ? '' : decodeText(key), value === null ? '' : decodeText(value)),
      );
      for (const text of missingAppends(accepted.get(partition) ?? [], held))
        this.#find('SIM-LINEAR', `accepted, but not in inbound/${partition}: ${text}`);
      this.#areAtTheirPlace(partition, inbound, appends);
    }
  }

  /** Each request stands where its client was told. */
  #areAtTheirPlace(partition: number, inbound: readonly LogRecord[], appends: readonly AckedAppend[]): void {
    const byNumber = new Map(this.#records.exchanges.map((exchange) => [`exchange ${exchange.number}`, exchange]));
    const records = new Map(inbound.map((record) => [record.offset, record]));
    for (const { log, position, who } of appends) {
      const exchange = byNumber.get(who);
      if (!log.startsWith(`inbound/${partition} `) || exchange === undefined || exchange.session === null) continue;
      const record = records.get(position);
      const [id] = exchange.asks;
      const value = record?.value == null ? null : (JSON.parse(decodeText(record.value)) as { id?: unknown });
      if (value?.id !== id)
        this.#find('SIM-LINEAR', `${who}: was told r${position}, but inbound/${partition} holds another there`);
    }
  }

  /** At most once with effects, at most twice without or if declared idempotent, planned stops aside. */
  runs(): void {
    const counts = new Map<string, number>();
    for (const { token, tool } of this.#records.runs) {
      const key = `${tool} ${token}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    // A repetition is not recognized if what it repeats was evicted: docs/adr/0010.
    const spare = this.#records.faults.includes('inbound-retention') ? 1 : 0;
    const sessions = new Map(this.#records.calls.map(({ token, session }) => [token, session]));
    for (const [key, count] of counts) {
      const [tool = '', token = ''] = key.split(' ');
      const spec = TOOLS[tool];
      const mayRepeat = spec?.readOnly === true || spec?.idempotent === true;
      const allowed = mayRepeat ? 2 + this.#releases(sessions.get(token)) : 1;
      if (count > allowed + spare) this.#find('SIM-ONCE', `${key}: ran ${count} times`);
    }
    const keys = new Map(this.#records.calls.map((call) => [call.token, keyOf(call.session)]));
    for (const { token, session } of this.#records.runs)
      if (keys.get(token) !== session) this.#find('SIM-SESSION', `${token} ran in session ${session}`);
  }

  /** By the log alone: each request of a living session has one end, and nothing behind it. */
  requests(): void {
    const epoch = this.#records.epochs.at(-1) ?? '';
    const former = new Set(this.#records.sessions.filter(({ id }) => !id.startsWith(epoch)).map(({ id }) => keyOf(id)));
    for (const [name, histories] of this.#partitions) {
      const partition = histories.at(-1);
      if (partition === undefined) continue;
      // With its epoch everything ends, and nobody writes it down a session each.
      if (!name.startsWith(epoch)) continue;
      for (const request of partition.requests) {
        if (former.has(request.key) || this.#records.epochs.length > 1) continue;
        const session = partition.sessions.get(request.key);
        const { body, offset } = request;
        const index = body.type === 'message' ? (body.batch?.index ?? 0) : 0;
        const label = `r${offset - index}`;
        const where = `${label} of partition ${partition.partition}`;
        const stream = session === undefined ? null : readStream('', session, label, false);
        if (stream !== null) {
          if (stream.afterEnd > 0) this.#find('SIM-ENDS', `${where}: ${stream.afterEnd} messages behind its end`);
          this.#countsUp(stream, where);
          this.#asksOnce(stream, where);
        }
        if (partition.endedKeys.has(request.key) || session?.endedAt != null) continue;
        // Nobody could serve it any more: that its client was told is seen by its call.
        const heldFrom = this.#records.partitions[partition.partition]?.inboundHeldFrom ?? 0;
        if (offset < heldFrom && (this.#records.faults.includes('inbound-retention') || evictsEvents(this.#records)))
          continue;
        if (stream?.ended !== true) this.#find('SIM-ENDS', `${where}: has no end in the log`);
      }
    }
  }

  /** What a tool said once is on a stream once: progress goes up by one. */
  #countsUp(stream: ModelStream, where: string): void {
    const last = new Map<string, number>();
    for (const { data } of stream.messages) {
      if (!data.includes('notifications/progress')) continue;
      const { params } = JSON.parse(data) as { params: { progressToken: string; progress: number } };
      const before = last.get(params.progressToken) ?? 0;
      if (params.progress !== before + 1)
        this.#find(
          params.progress > before ? 'SIM-NO-GAP' : 'SIM-NO-REPEAT',
          `${where}: progress ${params.progress} of ${params.progressToken} after ${before}`,
        );
      last.set(params.progressToken, params.progress);
    }
  }

  /** A person is asked each question once, whichever worker runs the tool. */
  #asksOnce(stream: ModelStream, where: string): void {
    const asked = new Set<string>();
    for (const { data } of stream.messages) {
      if (!data.includes('elicitation/create')) continue;
      const { params } = JSON.parse(data) as { params: { message: string } };
      if (asked.has(params.message)) this.#find('SIM-HUMAN', `${where}: ${params.message} was asked again`);
      asked.add(params.message);
    }
  }

  /** How often a worker left the partition of this session in order: what that cuts short is run again, and not counted. */
  #releases(session: string | undefined): number {
    const [epoch, partition] = (session ?? '').split('.');
    // What was released before a break stands in the history before it.
    const histories = this.#partitions.get(`${epoch}/${partition}`) ?? [];
    return Math.max(0, ...histories.map(({ releases }) => releases));
  }

  /** A session goes only for a reason. */
  session(session: SessionRecordOfRun): void {
    if (session.lost === null || session.lost === NEVER_BEGAN || session.deleted || session.forged) return;
    const isOwner = this.#harms.has('owner') || this.#harms.has('append');
    if (session.server === 'fleeting' && isOwner) return;
    if (this.#harms.has('history')) return;
    if (this.#records.faults.includes('instance-failure') && session.server === 'fleeting') return;
    this.#find('SIM-CAUSE', `session ${session.id}: lost (${session.lost}), which no fault of this run explains`);
  }

  #belongs(session: string, id: EventId, data: string, at: string): void {
    const [epoch, partition] = session.split('.');
    if (id.epoch !== epoch || String(id.partition) !== partition)
      this.#find('SIM-SESSION', `${at}: an id of another partition or epoch than ${session}`);
    const tag = createHash('sha256')
      .update(`${session}\n${labelOf(id)}`)
      .digest()
      .subarray(0, 4);
    if (!tag.equals(id.tag)) this.#find('SIM-SESSION', `${at}: the id names another session or stream`);
    const mark = /mark:([A-Za-z0-9_-]+)/.exec(data)?.[1];
    if (mark !== undefined && mark !== keyOf(session))
      this.#find('SIM-SESSION', `${at}: a message of session ${mark} came in ${keyOf(session)}`);
  }

  /** A cursor that no server gave gets nothing: it is refused for what is wrong with it, or ends its own session. */
  #forged({ receipts, status, lastEventId, forgery, refusal, session }: ExchangeRecord, where: string): void {
    const told = receipts.filter(({ id }) => parseEventId(id)?.seq !== 'end');
    if (told.length > 0) this.#find('SIM-REFUSED', `${where}: ${told.length} events for the forged ${lastEventId}`);
    if (status === 500) this.#find('SIM-NO-BUGS', `${where}: status 500`);
    if (forgery === undefined || status === null || status === 503 || status === 504) return;
    const record = this.#records.sessions.find(({ id }) => id === session);
    const mayBeOver = record === undefined || record.lost !== null || record.deleted || record.forged;
    if (status === 404 && (mayBeOver || this.#harms.has('history'))) return;
    const inBand = receipts.map(({ data }) => refusalOf(data)).at(-1) ?? null;
    const told400 = status === 400 ? (refusal ?? null) : null;
    const reason = told400 ?? inBand;
    const { answers, reasons } = REFUSALS[forgery];
    // A connection may be cut before its refusal has come.
    const isAnswered = status !== 200 || reason !== null;
    const isOver =
      (reason === 'session-ended' && mayBeOver) || (reason === 'epoch-mismatch' && this.#harms.has('history'));
    if (!answers.includes(status) || (isAnswered && reason !== null && !reasons.includes(reason) && !isOver))
      this.#find('SIM-REFUSED', `${where}: ${status} ${reason ?? ''} for ${lastEventId}, forged in its ${forgery}`);
  }

  /** An error of the gateway's own; whether it refuses a resume, so that nothing may follow. */
  #isRefusal(session: string, data: string, at: string): boolean {
    const { error } = JSON.parse(data) as { error?: { data?: { type?: string; reason?: string; code?: string } } };
    if (error === undefined) {
      this.#find('SIM-REFUSED', `${at}: ends with something else than an error`);
      return false;
    }
    const why = error.data?.reason ?? error.data?.code ?? '';
    if (!this.#explains(why, session))
      this.#find('SIM-CAUSE', `${at}: refused for ${why}, which no fault of this run explains`);
    return true;
  }

  /** A message is what the log says, for every reader alike. */
  #message(session: string, id: EventId, text: string, data: string, at: string, isLimbo: boolean): void {
    const label = labelOf(id);
    const key = `${session} ${label} ${id.seq}`;
    const seen = this.#seen.get(key);
    if (seen === undefined) this.#seen.set(key, { id: text, data, where: at });
    else if ((seen.id !== text || seen.data !== data) && !isLimbo)
      this.#find('SIM-SAME', `${at}: another reader got ${seen.id} (${seen.where})`);
    const streams = this.#stream(session, label, id);
    if (streams.length === 0) {
      this.#find('SIM-LOG', `${at}: no such stream in the log`);
      return;
    }
    const expected = streams.map(({ messages }) => messages[(id.seq as number) - 1]);
    const chain = Buffer.from(id.chain).toString('hex');
    if (!expected.some((each) => each?.offset === id.offset && each.data === data && each.chain === chain))
      this.#find('SIM-LOG', `${at}: the log says ${JSON.stringify(expected.at(-1) ?? null)}`);
  }

  /** An id that only moves the cursor skips nothing: all messages up to its anchor have been sent. */
  #moves(session: string, id: EventId, at: string): void {
    const skipped = this.#stream(session, labelOf(id), id).map(
      ({ messages }) => messages.filter(({ offset }) => offset <= id.offset).length - (id.seq as number),
    );
    if (skipped.length > 0 && skipped.every((count) => count > 0))
      this.#find('SIM-NO-GAP', `${at}: moves past ${Math.min(...skipped)} messages that were not sent`);
  }

  /** A connection that has met a newer attachment of its stream delivers nothing from behind it. */
  #newest({ session, method, liveAt, receipts }: ExchangeRecord, where: string): void {
    const own = method === 'POST' ? -1 : liveAt;
    const first = receipts.find(({ id }) => parseEventId(id) !== null);
    if (own === null || session === null || first === undefined) return;
    const id = parseEventId(first.id)!;
    const label = labelOf(id);
    // A lagging reader of a broken history may have met only one of them.
    const model = this.#partitions.get(`${id.epoch}/${id.partition}`)?.at(0)?.sessions.get(keyOf(session));
    const newer = model?.accepted.find(
      ({ offset, body }) =>
        body.type === 'attached' &&
        offset > own &&
        typeof body.stream === 'object' &&
        `${body.stream.kind === 'request' ? 'r' : 's'}${body.stream.at}` === label,
    );
    if (newer === undefined) return;
    const late = receipts.find(({ id: text, data }) => {
      const receipt = parseEventId(text);
      return data !== '' && receipt !== null && receipt.seq !== 'end' && receipt.offset > newer.offset;
    });
    if (late !== undefined)
      this.#find('SIM-NEWEST', `${where}: ${late.id} came, though the stream was taken at ${newer.offset}`);
  }

  #reread(exchange: ExchangeRecord, resumed: EventId | null, lastSeq: number): void {
    if (resumed === null || exchange.session === null) return;
    const stream = this.#stream(exchange.session, labelOf(resumed), resumed).at(-1);
    const count = stream?.messages.length ?? 0;
    const where = `exchange ${exchange.number} (${exchange.gateway}) read ${labelOf(resumed)} again after all`;
    if (exchange.status === 204) {
      if (resumed.seq !== count) this.#find('SIM-SAME', `${where}: nothing, but ${count} messages are there`);
      return;
    }
    if (exchange.status !== 200) {
      const session = this.#records.sessions.find(({ id }) => id === exchange.session);
      if (!this.#harms.has('history') && session?.forged !== true)
        this.#find('SIM-SAME', `${where}: status ${exchange.status}`);
      return;
    }
    if (exchange.receipts.some(({ id }) => id.split('.')[4] === 'end')) return;
    if (lastSeq !== count) this.#find('SIM-SAME', `${where}: up to ${lastSeq} of ${count}`);
  }

  /** The stream as each history of the partition has it. */
  #stream(session: string, label: string, id: EventId): readonly ModelStream[] {
    const key = `${session} ${label}`;
    const known = this.#streams.get(key);
    if (known !== undefined) return known;
    const streams = (this.#partitions.get(`${id.epoch}/${id.partition}`) ?? []).flatMap((history) => {
      const model = history.sessions.get(keyOf(session));
      return model === undefined ? [] : [this.#read(session, model, label, id)];
    });
    // What only moves the cursor does not yet tell where a stream began.
    if (id.seq !== 0 || !this.#isVague(label)) this.#streams.set(key, streams);
    return streams;
  }

  #read(session: string, model: ModelSession, label: string, id: EventId): ModelStream {
    const isStandalone = label.startsWith('s');
    const whole = readStream(session, model, label, isStandalone && beginsAtStart(model, Number(label.slice(1))));
    if (!this.#isVague(label) || whole.messages[Number(id.seq) - 1]?.offset === id.offset) return whole;
    return readStream(session, model, label, false);
  }

  /** Where a standalone stream begins depends on what was still held then; every reader must see it the same even so. */
  #isVague(label: string): boolean {
    return label.startsWith('s') && this.#harms.has('history');
  }
}

/** One append as it can be compared: by whom, and what. */
function ackedText(key: string, body: string): string {
  return `${key} ${body === '' ? '' : JSON.stringify(JSON.parse(body))}`;
}

function labelOf(id: EventId): string {
  return `${id.stream.kind === 'request' ? 'r' : 's'}${id.stream.at}`;
}

function keyOf(session: string): string {
  return session.split('.')[4] ?? '';
}

function startChain(session: string, label: string): string {
  return createHash('sha256').update(`${session}\n${label}\nchain`).digest('hex').slice(0, 16);
}

function extendChain(chain: string, data: string): string {
  return createHash('sha256').update(Buffer.from(chain, 'hex')).update(data).digest('hex').slice(0, 16);
}

function resultText(json: string): { token?: string; answer?: unknown } | null {
  const message = JSON.parse(json) as { result?: { content?: { text?: string }[] } };
  const text = message.result?.content?.[0]?.text;
  return text === undefined ? null : (JSON.parse(text) as { token?: string; answer?: unknown });
}
