/** The newest records of one partition, bounded in bytes, with an index by session key. Plain data, no I/O. SPEC: TAIL-CACHE. */
import { anchorChecksum } from '@throughline/protocol';
import type { EventRecord, LogRecord, Offset } from '@throughline/protocol';

/** An accepted record of a session; its checksum is computed once, however many connections ask. */
export class TailEvent {
  readonly event: EventRecord;
  #checksum: number | null = null;

  constructor(event: EventRecord) {
    this.event = event;
  }

  checksum(): number {
    this.#checksum ??= anchorChecksum(this.event.record);
    return this.#checksum;
  }
}

interface Slot {
  readonly record: LogRecord;
  /** Set if the record is accepted and belongs to a session. */
  readonly event: TailEvent | null;
  readonly bytes: number;
}

/** What a record costs beside its bytes. */
const RECORD_OVERHEAD_BYTES = 320;

/** Headers count as well: foreign producers may put anything there. */
export function costOf(record: LogRecord): number {
  let bytes = RECORD_OVERHEAD_BYTES + (record.key?.length ?? 0) + (record.value?.length ?? 0);
  for (const [name, value] of record.headers) bytes += name.length + value.length;
  return bytes;
}

/** Of a list in the order of offsets: the place of the first at or after `position`, searched from the place `from` on. */
export function firstIndexAt<T>(list: readonly T[], position: Offset, offsetOf: (item: T) => Offset, from = 0): number {
  let low = from;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (offsetOf(list[middle] as T) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class HotCache {
  #maxBytes: number;
  readonly #byKey = new Map<string, TailEvent[]>();
  /** Evicted slots are emptied at once and cut off now and then. */
  #slots: (Slot | undefined)[] = [];
  #head = 0;
  #bytes = 0;
  #start: Offset;

  /** @param start everything at or above it that will be added is held, until evicted. */
  constructor(maxBytes: number, start: Offset) {
    this.#maxBytes = maxBytes;
    this.#start = start;
  }

  /** First position from which nothing is missing. */
  start(): Offset {
    return this.#start;
  }

  bytes(): number {
    return this.#bytes;
  }

  /** Sessions of which an event is held. */
  sessions(): number {
    return this.#byKey.size;
  }

  /** Adds the next record in log order; `event` if it is an accepted record of a session. */
  add(record: LogRecord, event: TailEvent | null): void {
    const bytes = costOf(record);
    this.#slots.push({ record, event, bytes });
    this.#bytes += bytes;
    if (event !== null) {
      const events = this.#byKey.get(event.event.key);
      if (events === undefined) this.#byKey.set(event.event.key, [event]);
      else events.push(event);
    }
    while (this.#bytes > this.#maxBytes && this.#slots.length - this.#head > 1) this.#evict();
  }

  /** Takes effect with the next record. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** Forgets everything; what comes next begins at `start`. */
  reset(start: Offset): void {
    this.#slots = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#byKey.clear();
    this.#start = start;
  }

  /** The first record at or after `position`, which must not lie below {@link start}; `null` if there is none yet. */
  firstAt(position: Offset): LogRecord | null {
    const index = firstIndexAt(this.#slots, position, (slot) => slot?.record.offset ?? 0, this.#head);
    return this.#slots[index]?.record ?? null;
  }

  /**
   * Accepted records of `key` at or after `position`, at most `limit`, and no more than one beyond `maxBytes`: whoever
   * is slow to take them holds them, though they are evicted here.
   */
  eventsOf(key: string, position: Offset, limit: number, maxBytes = Infinity): readonly TailEvent[] {
    const events = this.#byKey.get(key);
    if (events === undefined) return [];
    const low = firstIndexAt(events, position, ({ event }) => event.offset);
    let until = low;
    for (let bytes = 0; until < events.length && until - low < limit && bytes < maxBytes; until++)
      bytes += costOf((events[until] as TailEvent).event.record);
    return events.slice(low, until);
  }

  #evict(): void {
    const slot = this.#slots[this.#head];
    if (slot === undefined) return;
    this.#slots[this.#head++] = undefined;
    this.#bytes -= slot.bytes;
    this.#start = slot.record.offset + 1;
    if (slot.event !== null) {
      const events = this.#byKey.get(slot.event.event.key);
      events?.shift();
      if (events?.length === 0) this.#byKey.delete(slot.event.event.key);
    }
    if (this.#head > 1024 && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    }
  }
}
