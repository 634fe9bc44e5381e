/**
 * What catch-up reads brought, kept for whoever comes back to the same place soon: after an outage all clients do, each
 * to its own position. Bounded in bytes; what was used longest ago goes first. Plain data, no I/O. SPEC: TAIL-CHUNKS.
 */
import { readEventRecord } from '@throughline/protocol';
import type { LogRecord, Offset } from '@throughline/protocol';
import { costOf, firstIndexAt, TailEvent } from './hot-cache.ts';

/** Everything that the log holds from one position to another, as far as it was folded when it was read. */
export class CatchUpChunk {
  readonly from: Offset;
  readonly next: Offset;
  readonly records: readonly LogRecord[];
  #byKey: Map<string, TailEvent[]> | null = null;

  constructor(from: Offset, next: Offset, records: readonly LogRecord[]) {
    this.from = from;
    this.next = next;
    this.records = records;
  }

  /** The first record at or after `position`. */
  firstAt(position: Offset): LogRecord | undefined {
    return this.records[firstIndexAt(this.records, position, (record) => record.offset)];
  }

  /** Records of a session at or after `position`, whoever wrote them. Read once, however many ask. */
  eventsOf(key: string, position: Offset): readonly TailEvent[] {
    this.#byKey ??= this.#index();
    const events = this.#byKey.get(key) ?? [];
    return events.slice(firstIndexAt(events, position, ({ event }) => event.offset));
  }

  bytes(): number {
    return this.records.reduce((sum, record) => sum + costOf(record), 0);
  }

  #index(): Map<string, TailEvent[]> {
    const byKey = new Map<string, TailEvent[]>();
    for (const record of this.records) {
      const event = readEventRecord(record);
      if ('unreadable' in event || event.key === '') continue;
      const events = byKey.get(event.key);
      if (events === undefined) byKey.set(event.key, [new TailEvent(event)]);
      else events.push(new TailEvent(event));
    }
    return byKey;
  }
}

export class CatchUpChunks {
  #maxBytes: number;
  /** Least recently used first. */
  readonly #chunks = new Map<CatchUpChunk, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  bytes(): number {
    return this.#bytes;
  }

  /** Takes effect with the next chunk. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** One that holds everything from `position` on, up to its own end beyond it. */
  find(position: Offset): CatchUpChunk | null {
    for (const [chunk, bytes] of this.#chunks) {
      if (chunk.from > position || position >= chunk.next) continue;
      this.#chunks.delete(chunk);
      this.#chunks.set(chunk, bytes);
      return chunk;
    }
    return null;
  }

  add(chunk: CatchUpChunk): void {
    if (chunk.next <= chunk.from) return;
    const bytes = chunk.bytes();
    this.#chunks.set(chunk, bytes);
    this.#bytes += bytes;
    for (const [oldest, size] of this.#chunks) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#chunks.delete(oldest);
      this.#bytes -= size;
    }
  }
}
