/** The history as a whole: what was acknowledged is there in the order of time, and a break leads to one new epoch. SPEC: SIM-LINEAR, SIM-BREAK. */
import { decodeText, parseEventId } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { keyOf, labelOf } from './evidence.ts';
import type { Evidence } from './evidence.ts';
import { breaksOfOrder, breaksOfPrefix, missingAppends } from './linearity.ts';
import type { AckedAppend, Delivery } from './linearity.ts';

/** A broken history must lead to a new epoch so soon, whatever else goes wrong at that time. */
const BREAK_BOUND_MS = 30_000;

export class HistoryJudge {
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** A broken history leads to one new epoch in bounded time, and nothing else does; afterwards nothing of the former one is told. */
  breaks(): void {
    const { epochs, epochsMs = [], breaks = [], faults, exchanges } = this.#evidence.records;
    const moments = [...new Set(breaks.map(({ atMs }) => atMs))];
    for (const { topic, partition, at, atMs, isTold } of breaks)
      if (isTold && !epochsMs.some((madeMs) => madeMs >= Math.floor(atMs) - 1 && madeMs <= atMs + BREAK_BOUND_MS))
        this.#evidence.find(
          'SIM-BREAK',
          `${topic}/${partition} broke at ${at} (${atMs.toFixed(0)} ms), and no epoch followed`,
        );
    if (!faults.includes('epoch-rotation') && epochs.length - 1 > moments.length)
      this.#evidence.find('SIM-BREAK', `${epochs.length - 1} new epochs for ${moments.length} breaks`);
    for (const { session, receipts, number } of exchanges) {
      const place = session === null ? -1 : epochs.indexOf(session.split('.')[0] ?? '');
      const overMs = place < 0 ? undefined : epochsMs[place + 1];
      const late =
        overMs === undefined
          ? undefined
          : receipts.find(
              ({ id, data, atMs }) => data !== '' && atMs > overMs + BREAK_BOUND_MS && parseEventId(id)?.seq !== 'end',
            );
      if (late !== undefined)
        this.#evidence.find('SIM-BREAK', `exchange ${number}: ${late.id} came, though its epoch is over`);
    }
  }

  /** What was acknowledged is there once, in the order of time; what came over all connections is one sequence a stream. */
  linear(): void {
    const { exchanges, breaks = [], partitions } = this.#evidence.records;
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
    for (const what of [...breaksOfOrder(appends), ...breaksOfPrefix(deliveries)])
      this.#evidence.find('SIM-LINEAR', what);
    for (const { partition, inbound } of partitions) {
      const held = inbound.map(({ key, value }) =>
        ackedText(key === null ? '' : decodeText(key), value === null ? '' : decodeText(value)),
      );
      for (const text of missingAppends(accepted.get(partition) ?? [], held))
        this.#evidence.find('SIM-LINEAR', `accepted, but not in inbound/${partition}: ${text}`);
      this.#areAtTheirPlace(partition, inbound, appends);
    }
  }

  /** Each request stands where its client was told. */
  #areAtTheirPlace(partition: number, inbound: readonly LogRecord[], appends: readonly AckedAppend[]): void {
    const byNumber = new Map(
      this.#evidence.records.exchanges.map((exchange) => [`exchange ${exchange.number}`, exchange]),
    );
    const records = new Map(inbound.map((record) => [record.offset, record]));
    for (const { log, position, who } of appends) {
      const exchange = byNumber.get(who);
      if (!log.startsWith(`inbound/${partition} `) || exchange === undefined || exchange.session === null) continue;
      const record = records.get(position);
      const [id] = exchange.asks;
      const value = record?.value == null ? null : (JSON.parse(decodeText(record.value)) as { id?: unknown });
      if (value?.id !== id)
        this.#evidence.find(
          'SIM-LINEAR',
          `${who}: was told r${position}, but inbound/${partition} holds another there`,
        );
    }
  }
}

/** One append as it can be compared: by whom, and what. */
function ackedText(key: string, body: string): string {
  return `${key} ${body === '' ? '' : JSON.stringify(JSON.parse(body))}`;
}
