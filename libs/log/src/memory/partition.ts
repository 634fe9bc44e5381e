/** One partition in memory: records in offset order, a start, an end, and those who wait for more. */
import type { LogRecord, Offset, RecordInput } from '@throughline/protocol';
import { toBase64Url } from '@throughline/protocol';
import { outOfRange } from '../out-of-range.ts';
import type { Bounds, ReadBatch } from '../port.ts';
import { recordBytes } from '../record-size.ts';
import { itemAt } from '../item-at.ts';

interface Entry {
  readonly record: LogRecord;
  readonly bytes: number;
}

export class MemoryPartition {
  bytes = 0;
  private readonly entries: Entry[] = [];
  private start: Offset = 0;
  private end: Offset = 0;
  private lastMs = 0;
  private readonly watchers = new Set<() => void>();

  bounds(): Bounds {
    return { start: this.start, end: this.end };
  }

  /** Bytes are copied: what a caller does to its arrays afterwards does not change the log. */
  append(records: readonly RecordInput[], wallMs: number): { offsets: Offset[]; timestampMs: number } {
    const timestampMs = Math.max(wallMs, this.lastMs);
    this.lastMs = timestampMs;
    const offsets: Offset[] = [];
    for (const record of records) {
      const offset = this.end++;
      const bytes = recordBytes(record);
      this.entries.push({ record: copyRecord(record, offset, timestampMs), bytes });
      this.bytes += bytes;
      offsets.push(offset);
    }
    this.wake();
    return { offsets, timestampMs };
  }

  /** Throws `OFFSET_OUT_OF_RANGE`. Never waits: no records at the position is an empty batch. */
  read(position: Offset, maxBytes: number): ReadBatch {
    const bounds = this.bounds();
    const refusal = outOfRange(position, bounds);
    if (refusal !== null) throw refusal;
    const records: LogRecord[] = [];
    let bytes = 0;
    let index = this.indexOf(position);
    for (; index < this.entries.length; index++) {
      const entry = itemAt(this.entries, index);
      if (records.length > 0 && bytes + entry.bytes > maxBytes) break;
      records.push(entry.record);
      bytes += entry.bytes;
    }
    const following = this.entries[index];
    return { records, next: following === undefined ? bounds.end : following.record.offset, bounds };
  }

  /** Calls `wake` on every change; returns the way to stop it. */
  watch(wake: () => void): () => void {
    this.watchers.add(wake);
    return () => {
      this.watchers.delete(wake);
    };
  }

  /** Moves the start to `offset` at most to the end; what lies before is gone. */
  evictBefore(offset: Offset): void {
    const start = Math.min(offset, this.end);
    if (start <= this.start) return;
    for (const entry of this.entries.splice(0, this.indexOf(start))) this.bytes -= entry.bytes;
    this.start = start;
    this.wake();
  }

  /** Loses what lies at or above `end`, as a broker that comes back with a part of its log; with 0, as a topic that was made anew. */
  truncate(end: Offset): void {
    if (end >= this.end) return;
    for (const entry of this.entries.splice(this.indexOf(end))) this.bytes -= entry.bytes;
    this.end = end;
    this.start = Math.min(this.start, end);
    this.wake();
  }

  /** Evicts records appended before `wallMs`. */
  evictOlderThan(wallMs: number): void {
    const first = this.entries[0];
    if (first === undefined || first.record.timestampMs >= wallMs) return;
    const kept = this.entries.find((entry) => entry.record.timestampMs >= wallMs);
    this.evictBefore(kept === undefined ? this.end : kept.record.offset);
  }

  /** Removes superseded records appended before `supersededBeforeMs` and newest tombstones appended before `tombstoneBeforeMs`. */
  compact(supersededBeforeMs: number, tombstoneBeforeMs: number): void {
    const newest = new Map<string, Offset>();
    for (const { record } of this.entries) if (record.key !== null) newest.set(toBase64Url(record.key), record.offset);
    const kept = this.entries.filter(({ record }) => {
      if (record.key === null) return true;
      if (newest.get(toBase64Url(record.key)) !== record.offset) return record.timestampMs >= supersededBeforeMs;
      return record.value !== null || record.timestampMs >= tombstoneBeforeMs;
    });
    this.entries.splice(0, this.entries.length, ...kept);
    this.bytes = kept.reduce((sum, entry) => sum + entry.bytes, 0);
  }

  get count(): number {
    return this.entries.length;
  }

  private wake(): void {
    for (const watcher of [...this.watchers]) watcher();
  }

  /** Index of the first entry at or after the offset. */
  private indexOf(offset: Offset): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (itemAt(this.entries, middle).record.offset < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function copyRecord(record: RecordInput, offset: Offset, timestampMs: number): LogRecord {
  return {
    offset,
    timestampMs,
    key: record.key === null ? null : new Uint8Array(record.key),
    value: record.value === null ? null : new Uint8Array(record.value),
    headers: record.headers.map(([name, value]) => [name, new Uint8Array(value)] as const),
  };
}
