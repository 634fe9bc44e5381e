/** One connection: what came over it, and whether it is what the log says. SPEC: SIM-*. */
import { parseEventId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import { createHash } from 'node:crypto';
import { keyOf, labelOf } from './evidence.ts';
import type { Evidence } from './evidence.ts';
import { refusalOf } from './forge-cursor.ts';
import type { ExchangeRecord, Forgery } from './records-of-run.ts';

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

export class ExchangeJudge {
  readonly #evidence: Evidence;
  readonly #seen = new Map<string, { readonly id: string; readonly data: string; readonly where: string }>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** One connection: numbers, chain, ids and content of what came over it. */
  exchange(exchange: ExchangeRecord): void {
    const { session, receipts, number, status } = exchange;
    const where = `exchange ${number}`;
    if (status !== 200 && receipts.length > 0)
      this.#evidence.find('SIM-REFUSED', `${where}: status ${status}, and events came`);
    if (status === 500) this.#evidence.find('SIM-NO-BUGS', `${where}: status 500`);
    if (!exchange.isHonest) {
      this.#forged(exchange, where);
      return;
    }
    if (status === 400) this.#evidence.find('SIM-REFUSED', `${where}: an honest request got 400`);
    const resumed = exchange.lastEventId === null ? null : parseEventId(exchange.lastEventId);
    let last: { readonly seq: number; readonly chain: string; readonly stream: string } | null =
      resumed === null || resumed.seq === 'end'
        ? null
        : { seq: resumed.seq, chain: Buffer.from(resumed.chain).toString('hex'), stream: labelOf(resumed) };
    let isRefused = false;
    for (const { id: text, data, atMs } of receipts) {
      const id = parseEventId(text);
      if (session === null || id === null) {
        this.#evidence.find('SIM-IDS', `${where}: ${JSON.stringify(text)} is no event id`);
        return;
      }
      const at = `${where} (${exchange.gateway}), ${text}`;
      // A batch gets one error a member.
      if (isRefused && id.seq !== 'end') this.#evidence.find('SIM-REFUSED', `${at}: came after the refusal`);
      this.#belongs(session, id, data, at);
      if (id.seq === 'end') {
        isRefused = this.#isRefusal(session, data, at) || isRefused;
        continue;
      }
      const label = labelOf(id);
      if (last !== null && last.stream !== label)
        this.#evidence.find('SIM-SESSION', `${at}: one connection, two streams (${last.stream})`);
      last ??= { seq: 0, chain: startChain(session, label), stream: label };
      const chain = Buffer.from(id.chain).toString('hex');
      if (data === '') {
        if (id.seq !== last.seq || chain !== last.chain)
          this.#evidence.find('SIM-NO-GAP', `${at}: an id without data says ${id.seq}, but ${last.seq} came last`);
        if (!this.#evidence.isLimbo(atMs)) this.#moves(session, id, at);
        continue;
      }
      if (id.seq !== last.seq + 1)
        this.#evidence.find(
          id.seq > last.seq ? 'SIM-NO-GAP' : 'SIM-NO-REPEAT',
          `${at}: number ${id.seq} after ${last.seq}`,
        );
      if (extendChain(last.chain, data) !== chain)
        this.#evidence.find('SIM-CHAIN', `${at}: the chain over what came is another`);
      last = { seq: id.seq, chain, stream: label };
      this.#message(session, id, text, data, at, this.#evidence.isLimbo(atMs));
    }
    this.#newest(exchange, where);
    if (exchange.isReread) this.#reread(exchange, resumed, last?.seq ?? 0);
  }

  #belongs(session: string, id: EventId, data: string, at: string): void {
    const [epoch, partition] = session.split('.');
    if (id.epoch !== epoch || String(id.partition) !== partition)
      this.#evidence.find('SIM-SESSION', `${at}: an id of another partition or epoch than ${session}`);
    const tag = createHash('sha256')
      .update(`${session}\n${labelOf(id)}`)
      .digest()
      .subarray(0, 4);
    if (!tag.equals(id.tag)) this.#evidence.find('SIM-SESSION', `${at}: the id names another session or stream`);
    const mark = /mark:([A-Za-z0-9_-]+)/.exec(data)?.[1];
    if (mark !== undefined && mark !== keyOf(session))
      this.#evidence.find('SIM-SESSION', `${at}: a message of session ${mark} came in ${keyOf(session)}`);
  }

  /** A cursor that no server gave gets nothing: it is refused for what is wrong with it, or ends its own session. */
  #forged({ receipts, status, lastEventId, forgery, refusal, session }: ExchangeRecord, where: string): void {
    const told = receipts.filter(({ id }) => parseEventId(id)?.seq !== 'end');
    if (told.length > 0)
      this.#evidence.find('SIM-REFUSED', `${where}: ${told.length} events for the forged ${lastEventId}`);
    if (status === 500) this.#evidence.find('SIM-NO-BUGS', `${where}: status 500`);
    if (forgery === undefined || status === null || status === 503 || status === 504) return;
    const record = this.#evidence.records.sessions.find(({ id }) => id === session);
    const mayBeOver = record === undefined || record.lost !== null || record.deleted || record.forged;
    if (status === 404 && (mayBeOver || this.#evidence.harms.has('history'))) return;
    const inBand = receipts.map(({ data }) => refusalOf(data)).at(-1) ?? null;
    const told400 = status === 400 ? (refusal ?? null) : null;
    const reason = told400 ?? inBand;
    const { answers, reasons } = REFUSALS[forgery];
    // A connection may be cut before its refusal has come.
    const isAnswered = status !== 200 || reason !== null;
    const isOver =
      (reason === 'session-ended' && mayBeOver) || (reason === 'epoch-mismatch' && this.#evidence.harms.has('history'));
    if (!answers.includes(status) || (isAnswered && reason !== null && !reasons.includes(reason) && !isOver))
      this.#evidence.find(
        'SIM-REFUSED',
        `${where}: ${status} ${reason ?? ''} for ${lastEventId}, forged in its ${forgery}`,
      );
  }

  /** An error of the gateway's own; whether it refuses a resume, so that nothing may follow. */
  #isRefusal(session: string, data: string, at: string): boolean {
    const { error } = JSON.parse(data) as { error?: { data?: { type?: string; reason?: string; code?: string } } };
    if (error === undefined) {
      this.#evidence.find('SIM-REFUSED', `${at}: ends with something else than an error`);
      return false;
    }
    const why = error.data?.reason ?? error.data?.code ?? '';
    if (!this.#evidence.explains(why, session))
      this.#evidence.find('SIM-CAUSE', `${at}: refused for ${why}, which no fault of this run explains`);
    return true;
  }

  /** A message is what the log says, for every reader alike. */
  #message(session: string, id: EventId, text: string, data: string, at: string, isLimbo: boolean): void {
    const label = labelOf(id);
    const key = `${session} ${label} ${id.seq}`;
    const seen = this.#seen.get(key);
    if (seen === undefined) this.#seen.set(key, { id: text, data, where: at });
    else if ((seen.id !== text || seen.data !== data) && !isLimbo)
      this.#evidence.find('SIM-SAME', `${at}: another reader got ${seen.id} (${seen.where})`);
    const streams = this.#evidence.streams(session, label, id);
    if (streams.length === 0) {
      this.#evidence.find('SIM-LOG', `${at}: no such stream in the log`);
      return;
    }
    const expected = streams.map(({ messages }) => messages[(id.seq as number) - 1]);
    const chain = Buffer.from(id.chain).toString('hex');
    if (!expected.some((each) => each?.offset === id.offset && each.data === data && each.chain === chain))
      this.#evidence.find('SIM-LOG', `${at}: the log says ${JSON.stringify(expected.at(-1) ?? null)}`);
  }

  /** An id that only moves the cursor skips nothing: all messages up to its anchor have been sent. */
  #moves(session: string, id: EventId, at: string): void {
    const skipped = this.#evidence
      .streams(session, labelOf(id), id)
      .map(({ messages }) => messages.filter(({ offset }) => offset <= id.offset).length - (id.seq as number));
    if (skipped.length > 0 && skipped.every((count) => count > 0))
      this.#evidence.find('SIM-NO-GAP', `${at}: moves past ${Math.min(...skipped)} messages that were not sent`);
  }

  /** A connection that has met a newer attachment of its stream delivers nothing from behind it. */
  #newest({ session, method, liveAt, receipts }: ExchangeRecord, where: string): void {
    const own = method === 'POST' ? -1 : liveAt;
    const first = receipts.find(({ id }) => parseEventId(id) !== null);
    if (own === null || session === null || first === undefined) return;
    const id = parseEventId(first.id)!;
    const label = labelOf(id);
    // A lagging reader of a broken history may have met only one of them.
    const model = this.#evidence.partitions.get(`${id.epoch}/${id.partition}`)?.at(0)?.sessions.get(keyOf(session));
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
      this.#evidence.find('SIM-NEWEST', `${where}: ${late.id} came, though the stream was taken at ${newer.offset}`);
  }

  #reread(exchange: ExchangeRecord, resumed: EventId | null, lastSeq: number): void {
    if (resumed === null || exchange.session === null) return;
    const stream = this.#evidence.streams(exchange.session, labelOf(resumed), resumed).at(-1);
    const count = stream?.messages.length ?? 0;
    const where = `exchange ${exchange.number} (${exchange.gateway}) read ${labelOf(resumed)} again after all`;
    if (exchange.status === 204) {
      if (resumed.seq !== count) this.#evidence.find('SIM-SAME', `${where}: nothing, but ${count} messages are there`);
      return;
    }
    if (exchange.status !== 200) {
      const session = this.#evidence.records.sessions.find(({ id }) => id === exchange.session);
      if (!this.#evidence.harms.has('history') && session?.forged !== true)
        this.#evidence.find('SIM-SAME', `${where}: status ${exchange.status}`);
      return;
    }
    if (exchange.receipts.some(({ id }) => id.split('.')[4] === 'end')) return;
    if (lastSeq !== count) this.#evidence.find('SIM-SAME', `${where}: up to ${lastSeq} of ${count}`);
  }
}

function startChain(session: string, label: string): string {
  return createHash('sha256').update(`${session}\n${label}\nchain`).digest('hex').slice(0, 16);
}

function extendChain(chain: string, data: string): string {
  return createHash('sha256').update(Buffer.from(chain, 'hex')).update(data).digest('hex').slice(0, 16);
}
