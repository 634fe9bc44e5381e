/** Ownership against a reference model: the whole history read again by the sentences of the design, for each question. */
import type { EventRecord, RecordInput } from '@throughline/protocol';
import { requestStream } from '@throughline/protocol';
import { claimed, eventAt, released, sent } from '@throughline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClaimHistory } from './claims.ts';
import { ModelStep } from './testing/model-step.ts';

const EPOCH = 'epochaaaaa';
const FORMER = 'epochbbbbb';

/** What the design says, as plainly as it says it. */
type Entry =
  | { readonly kind: 'claim'; readonly worker: string; readonly epoch: string; readonly predecessor: number | null }
  | { readonly kind: 'message'; readonly owner: number | null }
  | { readonly kind: 'release'; readonly owner: number };

interface Model {
  readonly log: Entry[];
  /** What each worker believes: the last claim that it made and holds for its own, void or not. */
  readonly beliefs: Map<string, number>;
}

/** "It counts only if its predecessor is in force at its place": the claims that count, among the first `length` entries. */
function validClaims({ log }: Model, length = log.length): number[] {
  const valid: number[] = [];
  for (const [offset, entry] of log.slice(0, length).entries())
    if (entry.kind === 'claim' && entry.epoch === EPOCH && entry.predecessor === (valid.at(-1) ?? null))
      valid.push(offset);
  return valid;
}

/** "A record with `owner` counts only if that equals the claim in force at its place; records without count always." */
function counts(model: Model, offset: number): boolean {
  const entry = model.log[offset];
  if (entry === undefined) throw new RangeError(`no entry at ${offset}`);
  if (entry.kind === 'claim') return validClaims(model, offset + 1).includes(offset);
  return entry.owner === null || entry.owner === (validClaims(model, offset).at(-1) ?? null);
}

interface Reader {
  readonly history: ClaimHistory;
  /** Where it began, and how far it has read. */
  readonly from: number;
  next: number;
}

interface Real {
  readonly records: EventRecord[];
  readonly readers: Reader[];
}

function append(model: Model, real: Real, entry: Entry): void {
  const offset = model.log.length;
  model.log.push(entry);
  const input: RecordInput =
    entry.kind === 'claim'
      ? claimed(entry.worker, entry.epoch, entry.predecessor)
      : entry.kind === 'release'
        ? released(entry.owner)
        : sent('k', requestStream(7), '{}', { owner: entry.owner });
  real.records.push(eventAt(input, offset));
}

/** A worker claims after it has read the first `seen` parts of ten of the log: it may name a predecessor that is no more. */
class Claim extends ModelStep<Model, Real> {
  readonly worker: string;
  readonly seen: number;
  readonly epoch: string;
  constructor(worker: string, seen: number, epoch: string) {
    super();
    this.worker = worker;
    this.seen = seen;
    this.epoch = epoch;
  }
  run(model: Model, real: Real): void {
    const length = Math.ceil((model.log.length * this.seen) / 10);
    model.beliefs.set(this.worker, model.log.length);
    const predecessor = validClaims(model, length).at(-1) ?? null;
    append(model, real, { kind: 'claim', worker: this.worker, epoch: this.epoch, predecessor });
  }
  toString(): string {
    return `claim(${this.worker}, ${this.seen}/10 read, ${this.epoch})`;
  }
}

/** A worker writes as the owner that it believes to be, however long it was away; or a gateway, as nobody. */
class Write extends ModelStep<Model, Real> {
  readonly worker: string | null;
  readonly kind: 'message' | 'release';
  constructor(worker: string | null, kind: 'message' | 'release') {
    super();
    this.worker = worker;
    this.kind = kind;
  }
  override check({ beliefs }: Readonly<Model>): boolean {
    return this.worker === null ? this.kind === 'message' : beliefs.has(this.worker);
  }
  run(model: Model, real: Real): void {
    const owner = this.worker === null ? null : (model.beliefs.get(this.worker) ?? null);
    append(
      model,
      real,
      this.kind === 'release' && owner !== null ? { kind: 'release', owner } : { kind: 'message', owner },
    );
  }
  toString(): string {
    return `${this.kind}(${this.worker ?? 'a gateway'})`;
  }
}

/** A reader begins at `at` parts of ten of the log, with the claims that the design says it is given: those before it. */
class Begin extends ModelStep<Model, Real> {
  readonly at: number;
  constructor(at: number) {
    super();
    this.at = at;
  }
  run(model: Model, real: Real): void {
    const from = Math.floor((model.log.length * this.at) / 10);
    const known = validClaims(model, from);
    const newest = known.at(-1);
    const entry = newest === undefined ? undefined : model.log[newest];
    const history = new ClaimHistory(EPOCH, known, entry?.kind === 'claim' ? entry.worker : '');
    real.readers.push({ history, from, next: from });
  }
  toString(): string {
    return `reader from ${this.at}/10`;
  }
}

/** Each reader reads on, some not to the end, and says of each record what the model says of it. */
class Read extends ModelStep<Model, Real> {
  readonly share: number;
  constructor(share: number) {
    super();
    this.share = share;
  }
  run(model: Model, { records, readers }: Real): void {
    for (const reader of readers) {
      const until = reader.next + Math.ceil(((records.length - reader.next) * this.share) / 10);
      for (; reader.next < until; reader.next++) {
        const event = records[reader.next];
        if (event === undefined) return;
        const expected = counts(model, reader.next) ? 'accepted' : 'fenced';
        expect(reader.history.fold(event), `record ${reader.next}, read from ${reader.from}`).toBe(expected);
      }
      // What was read stays what it was, for whoever asks again.
      for (let offset = reader.from; offset < reader.next; offset++) {
        const event = records[offset];
        if (event !== undefined)
          expect(reader.history.judge(event), `record ${offset}, asked again`).toBe(
            counts(model, offset) ? 'accepted' : 'fenced',
          );
      }
      const valid = validClaims(model, reader.next);
      const newest = valid.at(-1);
      const entry = newest === undefined ? undefined : model.log[newest];
      const isReleased = model.log
        .slice(0, reader.next)
        .some(
          (each, offset) =>
            offset >= reader.from && each.kind === 'release' && each.owner === newest && counts(model, offset),
        );
      expect(reader.history.list()).toEqual(valid);
      const owner = reader.history.owner();
      expect(owner?.claim).toBe(newest);
      if (entry?.kind === 'claim') expect(owner?.worker).toBe(entry.worker);
      if (newest !== undefined && newest >= reader.from) expect(owner?.released).toBe(isReleased);
    }
  }
  toString(): string {
    return `read ${this.share}/10`;
  }
}

const workers = fc.constantFrom('a', 'b', 'c');
const commands = fc.commands(
  [
    fc
      .tuple(workers, fc.constantFrom(10, 10, 10, 5, 8), fc.constantFrom(EPOCH, EPOCH, EPOCH, EPOCH, FORMER))
      .map(([worker, seen, epoch]) => new Claim(worker, seen, epoch)),
    fc
      .tuple(fc.option(workers), fc.constantFrom('message' as const, 'message' as const, 'release' as const))
      .map(([worker, kind]) => new Write(worker, kind)),
    fc.constantFrom(0, 3, 7, 10).map((at) => new Begin(at)),
    fc.constantFrom(10, 10, 4).map((share) => new Read(share)),
  ],
  { maxCommands: 60 },
);

describe('ownership', () => {
  it('[CLM-AGREE][CLM-FENCE][CLM-ONE][CLM-CHAIN] is what the design says, for every reader wherever it starts and however it lags', () => {
    fc.assert(
      fc.property(commands, (all) => {
        fc.modelRun(
          () => ({ model: { log: [], beliefs: new Map() }, real: { records: [], readers: [] } }),
          [...all, new Begin(0), new Read(10)],
        );
      }),
      { numRuns: 500 },
    );
  });
});
