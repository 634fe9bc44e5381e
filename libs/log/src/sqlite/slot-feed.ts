/**
 * The newest records of one partition on the side of the callers: what was appended through this log, or pushed by the
 * worker. Readers at the tail are served from here without a word to the worker. Bounded in bytes.
 */
import type { LogRecord, Offset } from '@throughline/protocol';
import { recordBytes } from '../record-size.ts';
import { itemAt } from '../item-at.ts';

export class SlotFeed {
  /** True while the worker tells of everything at or after `end`. */
  isWatched = false;
  /** First position held here. The log itself may begin before it. */
  start: Offset = 0;
  end: Offset = 0;
  /** Where the log begins, as far as the worker has told. */
  logStart: Offset = 0;
  private records: LogRecord[] = [];
  private sizes: number[] = [];
  private bytes = 0;
  private readonly wakers = new Set<() => void>();
  private readonly maxBytes: number;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  covers(position: Offset): boolean {
    return position >= this.start && position < this.end;
  }

  take(position: Offset, maxBytes: number): { records: LogRecord[]; next: Offset } {
    const first = this.indexOf(position);
    let last = first;
    let bytes = 0;
    while (last < this.records.length) {
      bytes += itemAt(this.sizes, last);
      if (last > first && bytes > maxBytes) break;
      last++;
    }
    return { records: this.records.slice(first, last), next: this.records[last]?.offset ?? this.end };
  }

  /** Forgets what it holds and begins again at `position`. */
  reset(position: Offset): void {
    this.records = [];
    this.sizes = [];
    this.bytes = 0;
    this.start = position;
    this.end = position;
  }

  /** Adds records that follow `end` without a gap. */
  extend(records: readonly LogRecord[], next: Offset): void {
    for (const record of records) {
      const bytes = recordBytes(record);
      this.records.push(record);
      this.sizes.push(bytes);
      this.bytes += bytes;
    }
    this.end = next;
  }

  /** Drops the oldest down to the bound. Called after waiting readers were served. */
  trim(): void {
    if (this.bytes <= this.maxBytes) return;
    let drop = 0;
    // By half the bound: so that not every record pays for moving all others.
    while (this.bytes > this.maxBytes / 2 && drop < this.records.length) this.bytes -= itemAt(this.sizes, drop++);
    this.drop(drop);
  }

  /** The log begins at `start` now. */
  trimBefore(start: Offset): void {
    this.logStart = start;
    if (start <= this.start) return;
    if (start > this.end) {
      this.isWatched = false;
      this.reset(start);
      return;
    }
    const drop = this.indexOf(start);
    for (let index = 0; index < drop; index++) this.bytes -= itemAt(this.sizes, index);
    this.drop(drop);
    this.start = start;
  }

  /** Calls `wake` at the next change; returns the way to stop it. */
  onChange(wake: () => void): () => void {
    this.wakers.add(wake);
    return () => {
      this.wakers.delete(wake);
    };
  }

  wake(): void {
    if (this.wakers.size === 0) return;
    for (const wake of [...this.wakers]) wake();
  }

  private drop(count: number): void {
    this.records.splice(0, count);
    this.sizes.splice(0, count);
    this.start = this.records[0]?.offset ?? this.end;
  }

  private indexOf(position: Offset): number {
    let low = 0;
    let high = this.records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (itemAt(this.records, middle).offset < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
