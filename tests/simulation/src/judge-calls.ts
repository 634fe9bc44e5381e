/** Calls: each ends once, in time, with an outcome that the faults of the run explain, and runs no more often than it may. SPEC: SIM-*. */
import { keyOf } from './evidence.ts';
import type { Evidence } from './evidence.ts';
import { readStream } from './model.ts';
import type { ModelStream } from './model.ts';
import type { CallRecord, SessionRecordOfRun } from './records-of-run.ts';
import { TOOLS } from './scripted-host.ts';
import { NEVER_BEGAN } from './sim-client.ts';

/** A call may take so long after the last fault. */
const CALL_BOUND_MS = 40_000;
/** Each strike may take a call that has run, with the repetitions that were met: the next one runs. */
const EVICTS_INBOUND = new Set(['inbound-retention', 'retention-of-checkpoint']);

export class CallJudge {
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  call(call: CallRecord): void {
    const { token, outcome, endedMs } = call;
    const where = `call ${token} (${call.tool}, ${JSON.stringify(call.requestId)})`;
    if (outcome === null || endedMs === null) {
      this.#evidence.find('SIM-ENDS', `${where}: did not end by ${this.#evidence.records.endMs.toFixed(0)} ms`);
      return;
    }
    if (endedMs > Math.max(this.#evidence.records.quietMs, call.startedMs) + CALL_BOUND_MS)
      this.#evidence.find('SIM-ENDS', `${where}: took until ${endedMs.toFixed(0)} ms`);
    const runs = this.#evidence.records.runs.filter((run) => run.token === token).length;
    const isTool = call.tool in TOOLS;
    if (outcome.kind === 'result' && isTool) {
      if (runs === 0) this.#evidence.find('SIM-ANSWER', `${where}: a result, but it never ran`);
      const text = resultText(outcome.json);
      if (text?.token !== token) this.#evidence.find('SIM-ANSWER', `${where}: the result is of ${String(text?.token)}`);
      if ((call.tool === 'ask' || call.tool === 'interview') && !JSON.stringify(text?.answer ?? null).includes(token))
        this.#evidence.find('SIM-ANSWER', `${where}: the answer of the client did not reach the tool`);
    }
    if (outcome.kind === 'error') {
      if (outcome.mayHaveRun === false && runs > 0)
        this.#evidence.find('SIM-ANSWER', `${where}: said that it did not run, but it ran ${runs} times`);
      if (outcome.code === 'NO_ANSWER') this.#evidence.find('SIM-ENDS', `${where}: ${outcome.json}`);
      this.#isAllowed(call, outcome.code, where);
    }
    if (outcome.kind === 'cancelled' && !call.cancelled)
      this.#evidence.find('SIM-ENDS', `${where}: ended as cancelled, but nobody cancelled it`);
    // Repetitions get the first one's outcome.
    const results = new Set(call.answers.filter((answer) => !answer.includes('"error"')));
    if (results.size > 1) this.#evidence.find('SIM-ONCE', `${where}: two results: ${[...results].join(' and ')}`);
  }

  /** Errors that the faults of the run do not explain. */
  #isAllowed(call: CallRecord, code: string, where: string): void {
    if (call.tool === 'fail' && code === 'TOOL') return;
    // A cancelled request that is posted again finds no outcome.
    if (call.cancelled && code === 'OWNER_LOST') return;
    if (!this.#evidence.explains(code, call.session))
      this.#evidence.find('SIM-CAUSE', `${where}: ${code}, which no fault of this run explains`);
  }

  /** At most once with effects, at most twice without or if declared idempotent, planned stops aside. */
  runs(): void {
    const counts = new Map<string, number>();
    for (const { token, tool } of this.#evidence.records.runs) {
      const key = `${tool} ${token}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    // A repetition is not recognized if what it repeats was evicted: docs/adr/0010.
    const spare = this.#evidence.records.struck.filter(({ fault }) => EVICTS_INBOUND.has(fault)).length;
    const sessions = new Map(this.#evidence.records.calls.map(({ token, session }) => [token, session]));
    for (const [key, count] of counts) {
      const [tool = '', token = ''] = key.split(' ');
      const spec = TOOLS[tool];
      const mayRepeat = spec?.readOnly === true || spec?.idempotent === true;
      const allowed = mayRepeat ? 2 + this.#releases(sessions.get(token)) : 1;
      if (count > allowed + spare) this.#evidence.find('SIM-ONCE', `${key}: ran ${count} times`);
    }
    const keys = new Map(this.#evidence.records.calls.map((call) => [call.token, keyOf(call.session)]));
    for (const { token, session } of this.#evidence.records.runs)
      if (keys.get(token) !== session) this.#evidence.find('SIM-SESSION', `${token} ran in session ${session}`);
  }

  /** By the log alone: each request of a living session has one end, and nothing behind it. */
  requests(): void {
    const epoch = this.#evidence.records.epochs.at(-1) ?? '';
    const former = new Set(
      this.#evidence.records.sessions.filter(({ id }) => !id.startsWith(epoch)).map(({ id }) => keyOf(id)),
    );
    for (const [name, histories] of this.#evidence.partitions) {
      const partition = histories.at(-1);
      if (partition === undefined) continue;
      // With its epoch everything ends, and nobody writes it down a session each.
      if (!name.startsWith(epoch)) continue;
      for (const request of partition.requests) {
        if (former.has(request.key) || this.#evidence.records.epochs.length > 1) continue;
        const session = partition.sessions.get(request.key);
        const { body, offset } = request;
        const index = body.type === 'message' ? (body.batch?.index ?? 0) : 0;
        const label = `r${offset - index}`;
        const where = `${label} of partition ${partition.partition}`;
        const stream = session === undefined ? null : readStream('', session, label, false);
        if (stream !== null) {
          if (stream.afterEnd > 0)
            this.#evidence.find('SIM-ENDS', `${where}: ${stream.afterEnd} messages behind its end`);
          this.#countsUp(stream, where);
          this.#asksOnce(stream, where);
        }
        if (partition.endedKeys.has(request.key) || session?.endedAt != null) continue;
        // Nobody could serve it any more: that its client was told is seen by its call.
        const heldFrom = this.#evidence.records.partitions[partition.partition]?.inboundHeldFrom ?? 0;
        if (
          offset < heldFrom &&
          (this.#evidence.records.faults.includes('inbound-retention') || this.#evidence.evictsEvents)
        )
          continue;
        if (stream?.ended !== true) this.#evidence.find('SIM-ENDS', `${where}: has no end in the log`);
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
        this.#evidence.find(
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
      if (asked.has(params.message)) this.#evidence.find('SIM-HUMAN', `${where}: ${params.message} was asked again`);
      asked.add(params.message);
    }
  }

  /** How often a worker left the partition of this session in order: what that cuts short is run again, and not counted. */
  #releases(session: string | undefined): number {
    const [epoch, partition] = (session ?? '').split('.');
    // What was released before a break stands in the history before it.
    const histories = this.#evidence.partitions.get(`${epoch}/${partition}`) ?? [];
    return Math.max(0, ...histories.map(({ releases }) => releases));
  }

  /** A session goes only for a reason. */
  session(session: SessionRecordOfRun): void {
    if (session.lost === null || session.lost === NEVER_BEGAN || session.deleted || session.forged) return;
    const isOwner = this.#evidence.harms.has('owner') || this.#evidence.harms.has('append');
    if (session.server === 'fleeting' && isOwner) return;
    if (this.#evidence.harms.has('history')) return;
    if (this.#evidence.records.faults.includes('instance-failure') && session.server === 'fleeting') return;
    this.#evidence.find(
      'SIM-CAUSE',
      `session ${session.id}: lost (${session.lost}), which no fault of this run explains`,
    );
  }
}

function resultText(json: string): { token?: string; answer?: unknown } | null {
  const message = JSON.parse(json) as { result?: { content?: { text?: string }[] } };
  const text = message.result?.content?.[0]?.text;
  return text === undefined ? null : (JSON.parse(text) as { token?: string; answer?: unknown });
}
