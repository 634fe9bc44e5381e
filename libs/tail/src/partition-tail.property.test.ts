/**
 * Cursors of random places and paces over a log that random owners, zombies and strangers write, with caches of a few
 * records and reads of a few bytes: each gets what a plain filter over the log gives, or is told of the gap.
 */
import type { Log } from '@throughline/log';
import { readEventRecord, requestStream } from '@throughline/protocol';
import type { CheckpointHint, LogRecord, Offset } from '@throughline/protocol';
import { checkpointed, claimed, sent } from '@throughline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CatchUpPool } from './catch-up-pool.ts';
import type { PartitionTail } from './partition-tail.ts';
import { createRig, EPOCH, EVENTS, OPEN } from './testing/log-rig.ts';
import type { Rig } from './testing/log-rig.ts';

const KEYS = ['a', 'b', 'c'];

/** What each session holds: the accepted records of its key, judged in the plainest way from the very start of the log. */
class Truth {
  readonly #held = new Map<string, Offset[]>(KEYS.map((key) => [key, []]));
  #inForce: Offset | null = null;
  #next = 0;

  add(record: LogRecord): void {
    if (record.offset < this.#next) return;
    this.#next = record.offset + 1;
    const event = readEventRecord(record);
    if ('unreadable' in event) return;
    if (event.body.type === 'claimed') {
      if (event.body.predecessor === this.#inForce) this.#inForce = event.offset;
    } else if (event.owner === null || event.owner === this.#inForce) this.#held.get(event.key)?.push(event.offset);
  }

  /** Where it was not told of anything yet. */
  next(): Offset {
    return this.#next;
  }

  of(key: string, from: Offset): Offset[] {
    return (this.#held.get(key) ?? []).filter((offset) => offset >= from);
  }
}

/** The log with small reads that take their time. */
function slowLog({ log, time, clock }: Rig): Log {
  const pause = (): Promise<void> => new Promise((resolve) => void clock.setTimer(time.random.below(25), resolve));
  return {
    ...log,
    async read(from, position, options = {}) {
      await pause();
      const batch = await log.read(from, position, { ...options, maxBytes: 200 + time.random.below(3000) });
      if (time.random.below(3) === 0) await pause();
      return batch;
    },
  };
}

class Writer {
  readonly truth = new Truth();
  readonly hints: CheckpointHint[] = [];
  readonly #rig: Rig;
  #claims: Offset[] = [];
  isDone = false;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  async run(count: number, evicts: boolean): Promise<void> {
    const { time, clock, log, append } = this.#rig;
    const { random } = time;
    await append(claimed('w', EPOCH, null));
    this.#claims = [0];
    for (let index = 0; index < count; index++) {
      const wait = random.below(4) === 0 ? random.below(60) : 0;
      await new Promise<void>((resolve) => void clock.setTimer(wait, resolve));
      await this.#step();
      const newest = this.hints.at(-1);
      if (evicts && newest !== undefined && random.below(12) === 0)
        log.controls.evictBefore(EVENTS, random.below(newest.offset + 1));
    }
    this.isDone = true;
  }

  async #step(): Promise<void> {
    const { time, log, append } = this.#rig;
    const { random } = time;
    const inForce = this.#claims.at(-1) ?? 0;
    const some = this.#claims[random.below(this.#claims.length)] ?? 0;
    const what = random.below(20);
    if (what === 0) {
      const predecessor = random.below(3) === 0 ? some : inForce;
      const [offset = 0] = await append(claimed('w', EPOCH, predecessor));
      if (predecessor === inForce) this.#claims.push(offset);
    } else if (what === 1) {
      const [offset = 0] = await append(checkpointed(inForce));
      this.hints.push({ offset, claims: [...this.#claims], worker: 'w' });
    } else if (what === 2) await append({ key: null, value: new Uint8Array(5), headers: [] });
    else {
      const burst = random.below(6) === 0 ? 1 + random.below(8) : 1;
      const inputs = Array.from({ length: burst }, () => {
        const owner = [inForce, inForce, some, null][random.below(4)] ?? null;
        return sent(KEYS[random.below(3)] ?? 'a', requestStream(1), 'x'.repeat(random.below(400)), { owner });
      });
      await append(...inputs);
    }
    // Noted before anything is evicted.
    const { records } = await log.read(EVENTS, this.truth.next());
    for (const record of records) this.truth.add(record);
  }
}

interface Reading {
  readonly key: string;
  readonly from: Offset;
  readonly got: Offset[];
  readonly faults: string[];
  end: 'done' | 'gap';
}

async function readAlong(rig: Rig, tail: PartitionTail, writer: Writer): Promise<Reading> {
  const { time, clock, log } = rig;
  const { random } = time;
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  await sleep(random.below(400));
  const { end } = await log.bounds(EVENTS);
  const key = KEYS[random.below(3)] ?? 'a';
  const start = random.below(end + 3);
  let from = start;
  const cursor = tail.cursor(key, start);
  const reading: Reading = { key, from: start, got: [], faults: [], end: 'done' };
  if (random.below(2) === 0) {
    const anchor = await cursor.readAnchor(OPEN);
    if (anchor.kind === 'gap') return { ...reading, end: 'gap' };
    if (anchor.kind === 'record') {
      if (anchor.record.offset !== start) reading.faults.push(`anchor ${start} read as ${anchor.record.offset}`);
      if (random.below(2) === 0) await sleep(random.below(100));
      from = start + 1;
      cursor.skipTo(from);
    }
  }
  for (;;) {
    const result = await cursor.next(OPEN, [0, 5, 50, 500][random.below(4)] ?? 0);
    if (result.kind === 'events') {
      reading.got.push(...result.events.map(({ event }) => event.offset));
      if (random.below(3) === 0) await sleep(random.below(200));
    } else if (result.kind === 'gap') {
      if (result.start <= cursor.position()) reading.faults.push(`gap to ${result.start} at ${cursor.position()}`);
      return { ...reading, from, end: 'gap' };
    } else if (result.kind === 'stopped') {
      reading.faults.push('stopped');
      return reading;
    } else if (writer.isDone && cursor.position() >= (await log.bounds(EVENTS)).end) {
      return { ...reading, from };
    }
    // Whatever it may name lies behind all that was returned and before all that was not.
    const passed = cursor.passed()?.offset ?? -1;
    const missing = writer.truth.of(key, from).filter((offset) => offset <= passed && !reading.got.includes(offset));
    if (missing.length > 0) reading.faults.push(`may name ${passed} but did not return ${missing.join()}`);
    if (passed >= Math.max(cursor.position(), from)) reading.faults.push(`may name ${passed} at ${cursor.position()}`);
  }
}

async function play(seed: number, evicts: boolean): Promise<{ gaps: number; slow: number }> {
  const rig = createRig(seed);
  const { random } = rig.time;
  const log = slowLog(rig);
  const writer = new Writer(rig);
  const writing = writer.run(60, evicts);
  const errors: unknown[] = [];
  let slow = 0;
  const tails: PartitionTail[] = [];
  const openTail = async (): Promise<Reading[]> => {
    await new Promise<void>((resolve) => void rig.clock.setTimer(random.below(300), resolve));
    const hints = [null, ...writer.hints];
    const held = evicts ? (writer.hints.at(-1) ?? null) : (hints[random.below(hints.length)] ?? null);
    let isBegun = false;
    const tail = rig.tail({
      log,
      cacheBytes: 1 + random.below(6000),
      pool: new CatchUpPool(1 + random.below(2)),
      hint: () => (isBegun ? (writer.hints.at(-1) ?? null) : held),
      onError: (error) => void errors.push(error),
      onSlowReader: () => {
        slow++;
      },
    });
    isBegun = true;
    tails.push(tail);
    return Promise.all(Array.from({ length: 4 }, () => readAlong(rig, tail, writer)));
  };
  const readings = (await rig.finish(Promise.all([openTail(), openTail(), writing.then(() => [])]))).flat();
  expect(errors).toEqual([]);
  for (const { key, from, got, faults, end } of readings) {
    expect(faults).toEqual([]);
    const truth = writer.truth.of(key, from);
    expect(got, `session ${key} from ${from}`).toEqual(end === 'done' ? truth : truth.slice(0, got.length));
    if (!evicts) expect(end).toBe('done');
  }
  await rig.finish(Promise.all(tails.map((tail) => tail.stop())));
  expect(rig.time.pending()).toBe(0);
  return { gaps: readings.filter(({ end }) => end === 'gap').length, slow };
}

/** Milliseconds that a property may take on a machine busy with other things. */
const SLOW_MS = 60_000;

describe('cursors of random places and paces', () => {
  it(
    '[TAIL-ORDER] each returns what a plain filter over the log gives: no hole, no repeat, nothing fenced',
    { timeout: SLOW_MS },
    async () => {
      let slow = 0;
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 0 }), async (seed) => {
          slow += (await play(seed, false)).slow;
        }),
        { numRuns: 150, endOnFailure: true },
      );
      expect(slow).toBeGreaterThan(100);
    },
  );

  it(
    '[TAIL-GAP] under retention each returns the same, up to a gap that it is told of',
    { timeout: SLOW_MS },
    async () => {
      let gaps = 0;
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 0 }), async (seed) => {
          gaps += (await play(seed, true)).gaps;
        }),
        { numRuns: 100, endOnFailure: true },
      );
      expect(gaps).toBeGreaterThan(20);
    },
  );
});
