/**
 * Random histories of several workers that pause, claim from stale views, checkpoint, and go on writing after they lost
 * the partition, with foreign producers in between. Whoever reads them, from wherever, must see the same.
 */
import { equalBytes, readEventRecord, requestStream, STANDALONE, standaloneStream } from '@throughline/protocol';
import type { EventRecord, RecordInput, StreamLabel, StreamTarget } from '@throughline/protocol';
import { attached, checkpointed, claimed, placed, released, sent, started } from '@throughline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClaimHistory } from './claims.ts';
import type { Verdict } from './claims.ts';
import { nextNumbering, startNumbering } from './numbering.ts';
import type { Numbering } from './numbering.ts';

const EPOCH = 'epochaaaaa';
const WORKERS = 4;

interface Hint {
  readonly offset: number;
  readonly claims: readonly number[];
  readonly worker: string;
}

/** What the rule says, read from the very start of the log, in the plainest way. */
interface Truth {
  readonly verdicts: readonly (Verdict | 'unreadable')[];
  readonly claims: readonly number[];
}

function judgePlainly(log: readonly (EventRecord | null)[]): Truth {
  const verdicts: (Verdict | 'unreadable')[] = [];
  const claims: number[] = [];
  let inForce: number | null = null;
  for (const event of log) {
    if (event === null) {
      verdicts.push('unreadable');
    } else if (event.body.type === 'claimed') {
      const counts = event.body.epoch === EPOCH && event.body.predecessor === inForce;
      verdicts.push(counts ? 'accepted' : 'fenced');
      if (counts) {
        inForce = event.offset;
        claims.push(event.offset);
      }
    } else {
      verdicts.push(event.owner === null || event.owner === inForce ? 'accepted' : 'fenced');
    }
  }
  return { verdicts, claims };
}

/** A worker: what it has read so far, which may be long ago, and the claim under which it writes, in force or not. */
class Worker {
  readonly name: string;
  readonly #world: World;
  history = new ClaimHistory(EPOCH);
  position = 0;
  claim: number | null = null;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
  }

  read(count: number): void {
    const { log, start, hint } = this.#world;
    if (this.position < start) {
      // Retention has passed it: it begins again as a new reader does.
      this.history = new ClaimHistory(EPOCH, hint?.claims ?? [], hint?.worker ?? '');
      this.position = start;
      this.claim = null;
    }
    for (const event of log.slice(this.position, this.position + count)) {
      this.position++;
      if (event === null) continue;
      const verdict = this.history.fold(event);
      if (event.body.type === 'claimed' && event.body.worker === this.name && verdict === 'accepted')
        this.claim = event.offset;
      if (event.body.type === 'checkpoint' && event.owner === this.claim && verdict === 'accepted')
        this.#world.publish(event, this);
    }
    this.history.trim(start);
  }
}

class World {
  /** `null`: a record that is no event. */
  readonly log: (EventRecord | null)[] = [];
  readonly workers = Array.from({ length: WORKERS }, (_, index) => new Worker(this, `w${index}`));
  readonly hints: Hint[] = [];
  readonly #lists = new Map<number, readonly number[]>();
  start = 0;
  hint: Hint | null = null;

  append(input: RecordInput): number {
    const offset = this.log.length;
    const event = readEventRecord(placed(input, offset));
    this.log.push('unreadable' in event ? null : event);
    return offset;
  }

  checkpoint(worker: Worker): void {
    if (worker.claim === null) return;
    const claims = worker.history.list().filter((claim) => claim <= (worker.claim ?? 0));
    this.#lists.set(this.append(checkpointed(worker.claim, { claims })), claims);
  }

  /** The owner has read its own checkpoint back, accepted: now others may begin there. Late ones are as valid. */
  publish(event: EventRecord, worker: Worker): void {
    const claims = this.#lists.get(event.offset);
    if (claims === undefined) return;
    const hint = { offset: event.offset, claims, worker: worker.name };
    this.hints.push(hint);
    if (hint.offset >= (this.hint?.offset ?? -1)) this.hint = hint;
  }

  /** Retention leaves the newest checkpoint, since an owner writes one far more often than that. */
  evict(part: number): void {
    const limit = this.hint?.offset ?? 0;
    this.start = Math.max(this.start, Math.floor(limit * part));
  }
}

const worker = fc.nat(WORKERS - 1);
const stream = fc.constantFrom<StreamTarget>(requestStream(1), requestStream(2), STANDALONE);
const action = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('read' as const), worker, fc.integer({ min: 1, max: 12 })) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('claim' as const), worker, fc.constant(0)) },
  { weight: 5, arbitrary: fc.tuple(fc.constant('write' as const), worker, stream) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('checkpoint' as const), worker, fc.constant(0)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('release' as const), worker, fc.constant(0)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('foreign' as const), fc.nat(6), fc.nat(40)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('evict' as const), worker, fc.double({ min: 0, max: 1, noNaN: true })) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

function foreign(world: World, kind: number, guess: number): RecordInput {
  switch (kind) {
    case 0:
      return sent('k', STANDALONE, `{"foreign":${guess}}`);
    case 1:
      return attached('k', standaloneStream(guess), `x${guess}`);
    case 2:
      return sent('k', requestStream(1), '{"forged":1}', { owner: guess });
    case 3:
      return claimed('stranger', 'epochbbbbb', world.workers[0]?.history.owner()?.claim ?? null);
    case 4:
      return claimed('stranger', EPOCH, guess);
    case 5:
      return checkpointed(guess, { claims: [guess] });
    default:
      return { key: null, value: new Uint8Array([guess]), headers: [] };
  }
}

function play(world: World, actions: readonly Action[]): void {
  for (const [what, who, detail] of actions) {
    const actor = world.workers[who % WORKERS];
    if (actor === undefined) continue;
    if (what === 'read') actor.read(detail);
    else if (what === 'claim') world.append(claimed(actor.name, EPOCH, actor.history.owner()?.claim ?? null));
    else if (what === 'write') {
      if (actor.claim === null) continue;
      const target = detail;
      if (target === STANDALONE) world.append(sent('k', target, `{"by":${actor.claim}}`, { owner: actor.claim }));
      else {
        world.append(started('k', target, 1, actor.claim));
        world.append(sent('k', target, `{"by":${actor.claim},"at":${world.log.length}}`, { owner: actor.claim }));
      }
    } else if (what === 'checkpoint') world.checkpoint(actor);
    else if (what === 'release') {
      if (actor.claim !== null) world.append(released(actor.claim));
    } else if (what === 'foreign') world.append(foreign(world, who, detail));
    else world.evict(detail);
  }
  for (const each of world.workers) each.read(world.log.length);
}

const STREAMS: readonly (readonly [StreamLabel, typeof STANDALONE | number])[] = [
  [requestStream(1), 1],
  [requestStream(2), 2],
  [standaloneStream(0), STANDALONE],
];

/** Numbers the accepted messages of each stream: position → seq and chain. */
function number(accepted: readonly EventRecord[], from: ReadonlyMap<string, Numbering>): Map<string, Numbering> {
  const at = new Map<string, Numbering>();
  for (const [label, target] of STREAMS) {
    const name = String(target);
    let numbering = from.get(name) ?? startNumbering('session', label);
    for (const { body, record, offset } of accepted) {
      if (body.type !== 'message') continue;
      if (body.stream === STANDALONE ? target !== STANDALONE : body.stream.at !== target) continue;
      numbering = nextNumbering(numbering, record.value ?? new Uint8Array());
      at.set(`${name}@${offset}`, numbering);
    }
  }
  return at;
}

/** A reader that begins at `from` with what a hint told it, and judges older records afterwards, as catch-up does. */
function readFrom(world: World, from: number, hint: Hint | null, trims: boolean) {
  const history = new ClaimHistory(EPOCH, hint?.claims ?? [], hint?.worker ?? '');
  const verdicts = new Map<number, Verdict>();
  world.log.slice(from).forEach((event, index) => {
    if (event !== null) verdicts.set(event.offset, history.fold(event));
    if (trims && index % 7 === 0) history.trim(world.start);
  });
  const first = Math.max(world.start, trims ? history.floor() : 0);
  for (const event of world.log.slice(first)) {
    if (event === null) continue;
    const judged = history.judge(event);
    const known = verdicts.get(event.offset);
    if (known !== undefined && known !== judged)
      throw new Error(`offset ${event.offset} was ${known} when read and ${judged} when judged`);
    verdicts.set(event.offset, judged);
  }
  return { history, verdicts };
}

/** Milliseconds that a property may take on a machine busy with other things. */
const SLOW_MS = 60_000;

describe('readers of random histories', () => {
  it(
    '[CLM-AGREE] any two readers, wherever they start, accept the same records and number them the same',
    { timeout: SLOW_MS },
    () => {
      let zombies = 0;
      let voided = 0;
      fc.assert(
        fc.property(fc.array(action, { minLength: 20, maxLength: 70 }), fc.nat(), (actions, pick) => {
          const world = new World();
          play(world, actions);
          const truth = judgePlainly(world.log);
          const wanted = world.log.filter(
            (event) => event !== null && truth.verdicts[event.offset] === 'accepted',
          ) as EventRecord[];
          const numbers = number(wanted, new Map());
          for (const event of world.log) {
            if (event === null || truth.verdicts[event.offset] !== 'fenced') continue;
            if (event.body.type === 'claimed') voided++;
            else if (truth.claims.includes(event.owner ?? -1)) zombies++;
          }
          const hints = world.hints.filter(({ offset }) => offset >= world.start);
          const starts: (readonly [from: number, hint: Hint | null])[] = [
            [0, null],
            ...hints
              .slice(pick % (hints.length + 1))
              .slice(0, 2)
              .map((hint) => [hint.offset, hint] as const),
            ...(world.hint === null
              ? []
              : [[world.start, world.hint] as const, [world.hint.offset, world.hint] as const]),
          ];
          for (const [from, hint] of starts) {
            for (const trims of [false, true]) {
              const reader = readFrom(world, from, hint, trims);
              for (const [offset, verdict] of reader.verdicts)
                if (verdict !== truth.verdicts[offset])
                  throw new Error(
                    `offset ${offset}: ${verdict} for a reader from ${from}, not ${truth.verdicts[offset]}`,
                  );
              expect(reader.history.owner()?.claim).toBe(truth.claims.at(-1));
              // A client resumed in the middle: numbering goes on from its cursor and meets the same.
              const seen = wanted.filter(({ offset }) => offset >= from && reader.verdicts.get(offset) === 'accepted');
              const carried = new Map<string, Numbering>();
              for (const [place, numbering] of numbers) {
                const [name = '', offset = ''] = place.split('@');
                if (Number(offset) < from) carried.set(name, numbering);
              }
              for (const [place, { seq, chain }] of number(seen, carried)) {
                const truly = numbers.get(place);
                if (truly?.seq !== seq || !equalBytes(truly.chain, chain))
                  throw new Error(`${place} is number ${seq} for a reader from ${from}, not ${String(truly?.seq)}`);
              }
            }
          }
          // The workers themselves, who fell behind, were trimmed and began again, agree as well.
          for (const each of world.workers)
            expect(each.history.list()).toEqual(truth.claims.slice(truth.claims.indexOf(each.history.list()[0] ?? -1)));
        }),
        { numRuns: 4000 },
      );
      // The histories are worth their name only if they hold what must be fenced.
      expect(zombies).toBeGreaterThan(1000);
      expect(voided).toBeGreaterThan(1000);
    },
  );
});
