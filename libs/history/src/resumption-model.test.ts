/**
 * Resumption against a reference model: a client that remembers what it was given, and a list of what the log held at
 * each time. The model knows no cursor check and no chain: it compares content.
 */
import { anchorChecksum, formatEventId, requestStream, streamTag } from '@throughline/protocol';
import type { EventId, LogRecord, RecordInput, SessionId } from '@throughline/protocol';
import { attached, placed, sent } from '@throughline/testkit';
import { readEventRecord } from '@throughline/protocol';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { follow, startFollowing } from './follow.ts';
import { nextNumbering, startNumbering } from './numbering.ts';
import { decideAnchor, decideOpening } from './resumption.ts';
import { ModelStep } from './testing/model-step.ts';

const KEY = 'AAAAAAAAAAAAAAAAAAAAAA';
const EPOCHS = ['epochaaaaa', 'epochbbbbb', 'epochccccc'];
/** Two streams of the session, and one of another session in the same partition. */
const STREAMS = [requestStream(7), requestStream(8)] as const;
const FOREIGN = 'another session';

interface Entry {
  readonly stream: 0 | 1 | 'foreign' | 'none';
  readonly text: string;
}

/** A cursor that was given, with what its client had received of the stream by then. */
interface Given {
  readonly epoch: number;
  readonly offset: number;
  readonly entry: Entry;
  readonly stream: 0 | 1;
  readonly received: readonly string[];
  readonly id: string;
}

interface Model {
  log: Entry[];
  start: number;
  epoch: number;
  isEnded: boolean;
  count: number;
}

interface Real {
  records: LogRecord[];
  readonly given: Given[];
}

const sessionOf = (): SessionId => ({
  epoch: EPOCHS[0] ?? '',
  partition: 3,
  from: 0,
  createdMs: 1,
  key: KEY,
});
const SESSION_TEXT = 'the session as sent';

function inputOf({ stream, text }: Entry): RecordInput {
  if (stream === 'none') return attached(KEY, requestStream(99), text);
  if (stream === 'foreign') return sent('BBBBBBBBBBBBBBBBBBBBBB', requestStream(7), text);
  return sent(KEY, STREAMS[stream], text);
}

/** As the design says it: c0 over the session id, the label and `chain`; cn over the one before and the payload. */
function chainOf(stream: 0 | 1, texts: readonly string[]): Uint8Array {
  const sha = (...parts: (string | Uint8Array)[]): Buffer => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    return hash.digest().subarray(0, 8);
  };
  return texts.reduce((chain, text) => sha(chain, text), sha(`${SESSION_TEXT}\nr${stream === 0 ? 7 : 8}\nchain`));
}

class Append extends ModelStep<Model, Real> {
  readonly stream: Entry['stream'];
  constructor(stream: Entry['stream']) {
    super();
    this.stream = stream;
  }
  run(model: Model, real: Real): void {
    // What is lost and written anew is never the same by chance.
    const entry = { stream: this.stream, text: `"${model.count++}"` };
    real.records.push(placed(inputOf(entry), model.log.length));
    model.log.push(entry);
  }
  toString(): string {
    return `append(${this.stream})`;
  }
}

class Evict extends ModelStep<Model, Real> {
  readonly share: number;
  constructor(share: number) {
    super();
    this.share = share;
  }
  run(model: Model): void {
    model.start += Math.ceil(((model.log.length - model.start) * this.share) / 10);
  }
  toString(): string {
    return `evict ${this.share}/10`;
  }
}

class Truncate extends ModelStep<Model, Real> {
  readonly count: number;
  constructor(count: number) {
    super();
    this.count = count;
  }
  run(model: Model, real: Real): void {
    const end = Math.max(0, model.log.length - this.count);
    model.log = model.log.slice(0, end);
    real.records = real.records.slice(0, end);
    model.start = Math.min(model.start, end);
  }
  toString(): string {
    return `truncate ${this.count}`;
  }
}

class Rotate extends ModelStep<Model, Real> {
  override check({ epoch }: Readonly<Model>): boolean {
    return epoch < EPOCHS.length - 1;
  }
  run(model: Model): void {
    model.epoch++;
  }
  toString(): string {
    return 'rotate the epoch';
  }
}

class End extends ModelStep<Model, Real> {
  run(model: Model): void {
    model.isEnded = true;
  }
  toString(): string {
    return 'end the session';
  }
}

/** A client reads a stream from its first message on and keeps each cursor. */
class Read extends ModelStep<Model, Real> {
  readonly stream: 0 | 1;
  constructor(stream: 0 | 1) {
    super();
    this.stream = stream;
  }
  override check({ start, epoch, isEnded }: Readonly<Model>): boolean {
    return start === 0 && epoch === 0 && !isEnded;
  }
  run(model: Model, real: Real): void {
    let numbering = startNumbering(SESSION_TEXT, STREAMS[this.stream]);
    const received: string[] = [];
    for (const [offset, entry] of model.log.entries()) {
      if (entry.stream !== this.stream) continue;
      const record = real.records[offset]!;
      received.push(entry.text);
      numbering = nextNumbering(numbering, record.value ?? new Uint8Array(0));
      expect(numbering.seq).toBe(received.length);
      expect(Buffer.from(numbering.chain)).toEqual(Buffer.from(chainOf(this.stream, received)));
      const cursor: EventId = {
        ...{ epoch: EPOCHS[0] ?? '', partition: 3, offset, stream: STREAMS[this.stream] },
        ...{ seq: numbering.seq, chain: numbering.chain },
        ...{ tag: streamTag(SESSION_TEXT, STREAMS[this.stream]), crc: anchorChecksum(record) },
      };
      real.given.push({
        ...{ epoch: 0, offset, entry, stream: this.stream },
        ...{ received: [...received], id: formatEventId(cursor) },
      });
    }
  }
  toString(): string {
    return `read stream ${this.stream}`;
  }
}

/** One of the cursors that were given comes back, in this session or in another one. */
class Resume extends ModelStep<Model, Real> {
  readonly pick: number;
  readonly isOther: boolean;
  constructor(pick: number, isOther: boolean) {
    super();
    this.pick = pick;
    this.isOther = isOther;
  }
  run(model: Model, { given, records }: Real): void {
    if (given.length === 0) return;
    const cursor = given[this.pick % given.length]!;
    // Its own attachment stands at the end of what is there.
    const attachedAt = model.log.length;
    expect(told(cursor, this.isOther, model, records, attachedAt)).toEqual(expected(cursor, this.isOther, model));
  }
  toString(): string {
    return `resume(${this.pick}${this.isOther ? ', in another session' : ''})`;
  }
}

type Answer = { readonly refused: string } | { readonly texts: readonly string[]; readonly seq: number };

/** By content alone. */
function expected({ offset, entry, stream, received }: Given, isOther: boolean, model: Model): Answer {
  if (model.epoch > 0) return { refused: 'epoch-mismatch' };
  if (isOther) return { refused: model.isEnded ? 'session-ended' : 'cursor-foreign' };
  if (model.isEnded) return { refused: 'session-ended' };
  if (offset >= model.log.length) return { refused: 'beyond-end' };
  if (offset < model.start) return { refused: 'gap' };
  if (model.log[offset] !== entry) return { refused: 'diverged' };
  const after = model.log.slice(offset + 1).filter((each) => each.stream === stream);
  return { texts: after.map(({ text }) => text), seq: received.length + after.length };
}

/** By the functions of the product, put together as one read that begins at the anchor. */
function told(given: Given, isOther: boolean, model: Model, records: readonly LogRecord[], attachedAt: number): Answer {
  const opening = decideOpening({
    lastEventId: given.id,
    sessionId: isOther ? FOREIGN : SESSION_TEXT,
    session: sessionOf(),
    currentEpoch: EPOCHS[model.epoch] ?? '',
    sessionEnded: model.isEnded,
  });
  if (opening.do === 'refuse') return { refused: opening.reason };
  if (opening.do !== 'read') throw new TypeError(`unexpected ${opening.do}`);
  const { cursor } = opening;
  const record = cursor.offset < model.start ? undefined : records[cursor.offset];
  const finding =
    record !== undefined
      ? ({ found: 'record', record } as const)
      : cursor.offset < model.start
        ? ({ found: 'evicted' } as const)
        : ({ found: 'nothing-yet', attachedAt } as const);
  const decision = decideAnchor(cursor, finding);
  if (decision.do === 'refuse') return { refused: decision.reason };
  expect(decision.do).toBe('resume');
  let following = startFollowing(cursor.stream, 'mine');
  let numbering = { seq: Number(cursor.seq), chain: cursor.chain };
  const texts: string[] = [];
  for (const next of records.slice(cursor.offset + 1)) {
    const event = readEventRecord(next);
    // The tail gives a connection the records of its own session only.
    if ('unreadable' in event || event.key !== KEY) continue;
    const [after, step] = follow(following, event);
    following = after;
    if (step.do !== 'deliver') continue;
    texts.push(Buffer.from(next.value ?? []).toString());
    numbering = nextNumbering(numbering, next.value ?? new Uint8Array(0));
  }
  expect(Buffer.from(numbering.chain)).toEqual(Buffer.from(chainOf(given.stream, [...given.received, ...texts])));
  return { texts, seq: numbering.seq };
}

const streams = fc.constantFrom(0 as const, 1 as const);
const commands = fc.commands(
  [
    fc.constantFrom<Entry['stream']>(0, 0, 1, 'foreign', 'none').map((stream) => new Append(stream)),
    streams.map((stream) => new Read(stream)),
    fc
      .tuple(fc.nat(200), fc.constantFrom(false, false, false, true))
      .map(([pick, isOther]) => new Resume(pick, isOther)),
    fc.constantFrom(1, 5).map((share) => new Evict(share)),
    fc.constantFrom(1, 3, 100).map((count) => new Truncate(count)),
    fc.constant(new Rotate()),
    fc.constant(new End()),
  ],
  { maxCommands: 50 },
);

describe('a resume', () => {
  it('[RES-RESUME][RES-REASON][RES-ANCHOR][RES-SEQ] goes on exactly where its client was, or is refused for what is true of the log', () => {
    const seen = new Set<string>();
    const opening = [0, 1, 'foreign', 0, 1, 0].map((stream) => new Append(stream as Entry['stream']));
    fc.assert(
      fc.property(commands, (all) => {
        fc.modelRun(
          () => ({
            model: { log: [], start: 0, epoch: 0, isEnded: false, count: 0 },
            real: { records: [], given: [] },
          }),
          [...opening, new Read(0), new Read(1), ...all, new Resume(0, false), new Resume(4, false)],
        );
        for (const command of all) seen.add(command.toString().split(/[ (]/)[0] ?? '');
      }),
      { numRuns: 500 },
    );
    expect(seen.size).toBeGreaterThan(5);
  });
});
