/**
 * The place of one stream in this process, and its appends: one at a time, what waits meanwhile goes in one. An append
 * of unknown outcome puts the place in doubt: the next one looks what the log holds before it, and makes sure after it
 * that nothing came between. SPEC: EVS-ORDER, EVS-UNKNOWN.
 */
import type { Numbering } from '@throughline/history';
import { hasLogCode } from '@throughline/log';
import type { Appended, Clock, Log, PartitionRef } from '@throughline/log';
import type { LogRecord, Offset, RecordInput, StreamLabel } from '@throughline/protocol';
import { EventStoreError } from './errors.ts';
import type { Limits } from './limits.ts';
import { after, idOf, isSame, labelOf, makeStored, readStored, startOf } from './stored-event.ts';
import type { SessionPlace } from './stored-event.ts';
import { inTime, scan } from './stream-scan.ts';
import { Turns } from './turns.ts';

const MAX_BATCH_EVENTS = 500;
const MAX_BATCH_CHARS = 256 * 1024;
const MAX_TRIES = 3;

export interface StreamWriterOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly of: PartitionRef;
  readonly place: SessionPlace;
  readonly sdkStream: string;
  /** Nothing of the stream lies below. */
  readonly from: Offset;
  /** The stream begins here and now; else its place is looked for when it is needed. */
  readonly isFresh: boolean;
}

interface Waiting {
  readonly json: string;
  readonly isPrimer: boolean;
  resolve(id: string): void;
  reject(error: unknown): void;
}

/** A stream up to a position of the log. */
interface Head {
  readonly at: Numbering;
  readonly position: Offset;
}

export class StreamWriter {
  readonly label: StreamLabel;
  /** The call that it belongs to has been answered. */
  isAnswered = false;
  readonly #options: StreamWriterOptions;
  readonly #turns: Turns;
  readonly #queue: Waiting[] = [];
  /** `null`: not known. */
  #head: Head | null;
  #isInDoubt = false;
  #busy = 0;

  constructor(options: StreamWriterOptions) {
    this.#options = options;
    this.label = labelOf(options.sdkStream);
    this.#turns = new Turns(options.clock);
    this.#head = options.isFresh ? { at: startOf(options.place, this.label), position: options.from } : null;
  }

  /** Nothing waits and nothing is under way. */
  isIdle(): boolean {
    return this.#busy === 0;
  }

  /** Everything below is known to be in the log. */
  position(): Offset {
    return this.#head?.position ?? this.#options.from;
  }

  /** Resolves with the id of the event once it is durable. Ids come in the order of the calls. */
  store(json: string, isPrimer: boolean): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    this.#queue.push({ json, isPrimer, resolve, reject });
    if (this.#queue.length === 1) void this.#turn(() => this.#drain());
    return promise;
  }

  /**
   * Runs `work` while nothing of this stream is appended, until whoever waits for it has gone on. If `work` resolves
   * with where the stream stands, that is its place from now on.
   */
  async exclusively<T>(
    work: (head: Numbering | null) => Promise<{ readonly head: Head; readonly result: T }>,
  ): Promise<T> {
    return await this.#turn(async () => {
      const { head, result } = await work(this.#head?.at ?? null);
      this.#head = head;
      this.#isInDoubt = false;
      return result;
    }, true);
  }

  async #turn<T>(work: () => Promise<T>, lingers = false): Promise<T> {
    this.#busy++;
    try {
      return await this.#turns.take(work, lingers);
    } finally {
      this.#busy--;
    }
  }

  /** Never rejects. */
  async #drain(): Promise<void> {
    const batch = this.#takeBatch();
    if (this.#queue.length > 0) void this.#turn(() => this.#drain());
    try {
      const ids = await this.#append(batch);
      batch.forEach((waiting, index) => {
        waiting.resolve(ids[index] ?? '');
      });
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
  }

  #takeBatch(): Waiting[] {
    let chars = 0;
    let count = 0;
    for (const { json } of this.#queue) {
      if (count >= MAX_BATCH_EVENTS || (count > 0 && chars + json.length > MAX_BATCH_CHARS)) break;
      chars += json.length;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #append(batch: readonly Waiting[]): Promise<string[]> {
    const { log, of, place, sdkStream } = this.#options;
    for (let tries = 1; tries <= MAX_TRIES; tries++) {
      const before = await this.#place();
      let at = before.at;
      const records: RecordInput[] = [];
      const states: Numbering[] = [];
      for (const { json, isPrimer } of batch) {
        const record = makeStored(place, { sdkStream, json, isPrimer }, at);
        at = after(at, { isPrimer, payload: record.value ?? new Uint8Array(0) });
        records.push(record);
        states.push(at);
      }
      let appended: Appended;
      try {
        appended = await log.append(of, records);
      } catch (error) {
        // It may come into the log at any time, before or behind the next one.
        if (hasLogCode(error, 'APPEND_UNKNOWN')) this.#isInDoubt = true;
        throw error;
      }
      if (this.#isInDoubt && !(await this.#isNext(before, appended))) continue;
      this.#isInDoubt = false;
      this.#head = { at, position: (appended.offsets.at(-1) ?? 0) + 1 };
      return records.map((input, index) => {
        const record = { ...input, offset: appended.offsets[index] ?? 0, timestampMs: appended.timestampMs };
        return idOf(place, this.label, states[index] ?? at, record);
      });
    }
    throw new EventStoreError('CONTENDED', 'another process writes the same stream of this session');
  }

  /** Where the stream stands, as far as the log can say it now. */
  async #place(): Promise<Head> {
    if (this.#head !== null && !this.#isInDoubt) return this.#head;
    const head = await this.#follow(this.#head, null);
    this.#head = head;
    return head;
  }

  /** Whether what was appended follows what was there: nothing of the stream came between. */
  async #isNext(before: Head, appended: Appended): Promise<boolean> {
    const first = appended.offsets[0] ?? 0;
    const { at } = await this.#follow(before, first);
    if (isSame(at, before.at)) return true;
    this.#head = { at, position: first };
    return false;
  }

  /**
   * The stream from a known place, or from its beginning, to the end of the log or to `below`. Of a stream whose
   * beginning retention took, what is held tells where it stands; if nothing is held, no id of it can be resumed at, and
   * it begins anew.
   */
  async #follow(known: Head | null, below: Offset | null): Promise<Head> {
    const { log, clock, limits, of, place, from } = this.#options;
    const { start } = await log.bounds(of);
    const isCut = known === null && start > from;
    let at = known?.at ?? (isCut ? null : startOf(place, this.label));
    const begin = Math.max(known?.position ?? from, start);
    const take = (record: LogRecord): void => {
      if (below !== null && record.offset >= below) return;
      const stored = readStored(place, record);
      if (stored === null || stored.sdkStream !== this.#options.sdkStream) return;
      if (at === null || isSame(stored.follows, at)) at = after(stored.follows, stored);
    };
    const position = await inTime(clock, limits.replayMs, (signal) =>
      scan({ log, of, from: begin, atLeast: Math.max(begin, below ?? 0), signal }, take),
    );
    return { at: at ?? startOf(place, this.label), position: below ?? position };
  }
}
