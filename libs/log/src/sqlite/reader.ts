/** Reads of one connection: each sees one state of the file, so that an eviction beside it is a refusal and never a hole. */
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '@throughline/protocol';
import type { LogError } from '../errors.ts';
import { outOfRange } from '../out-of-range.ts';
import type { Bounds } from '../port.ts';
import { prepareRows, retryBusy } from './database.ts';
import type { StoredRow } from './record-codec.ts';
import { OFFSET_SPAN, recordId } from './slots.ts';

export type ReadOutcome =
  | { readonly kind: 'out-of-range'; readonly refusal: LogError }
  | { readonly kind: 'rows'; readonly rows: readonly StoredRow[]; readonly next: Offset; readonly bounds: Bounds };

export interface Reader {
  read(slot: number, position: Offset, maxBytes: number): ReadOutcome;
  bounds(slot: number): Bounds;
  /** Slot, start and end of every partition. */
  all(): readonly (readonly [slot: number, start: Offset, end: Offset])[];
  /** Another number after each commit of another connection. */
  version(): number;
}

const BUSY_MS = 2000;

export function createReader(db: DatabaseSync): Reader {
  const boundsRow = prepareRows(db, 'SELECT start, next FROM partitions WHERE slot = ?');
  const allRows = prepareRows(db, 'SELECT slot, start, next FROM partitions ORDER BY slot');
  // A column keeps whatever a foreign hand wrote: what is no blob is read as the bytes of its text, no time as one that is.
  const records = prepareRows(
    db,
    `SELECT id, MIN(MAX(CAST(timestamp_ms AS INTEGER), 0), ${Number.MAX_SAFE_INTEGER}),
      CAST(key AS BLOB), CAST(value AS BLOB), CAST(headers AS BLOB)
    FROM records WHERE id >= ? AND id < ? ORDER BY id`,
  );
  const dataVersion = prepareRows(db, 'PRAGMA data_version');

  const bounds = (slot: number): Bounds => {
    const [start, end] = boundsRow.get(slot) as unknown as [number, number];
    return { start, end };
  };

  const rowsFrom = (slot: number, position: Offset, maxBytes: number): { rows: StoredRow[]; next: Offset | null } => {
    const rows: StoredRow[] = [];
    let bytes = 0;
    const found = records.iterate(recordId(slot, position), recordId(slot + 1, 0));
    for (const row of found as unknown as Iterable<
      [number, number, Uint8Array | null, Uint8Array | null, Uint8Array | null]
    >) {
      const [id, timestampMs, key, value, headers] = row;
      const offset = id - slot * OFFSET_SPAN;
      bytes += (key?.length ?? 0) + (value?.length ?? 0) + (headers?.length ?? 0);
      if (rows.length > 0 && bytes > maxBytes) return { rows, next: offset };
      rows.push({ offset, timestampMs, key, value, headers });
    }
    return { rows, next: null };
  };

  return {
    bounds: (slot) => retryBusy(() => bounds(slot), BUSY_MS),
    all: () => retryBusy(() => allRows.all() as unknown as [number, number, number][], BUSY_MS),
    version: () => (dataVersion.get() as unknown as [number])[0],
    read: (slot, position, maxBytes) =>
      retryBusy(() => {
        db.exec('BEGIN');
        try {
          const held = bounds(slot);
          const refusal = outOfRange(position, held);
          if (refusal !== null) return { kind: 'out-of-range', refusal };
          if (position === held.end) return { kind: 'rows', rows: [], next: held.end, bounds: held };
          const { rows, next } = rowsFrom(slot, position, maxBytes);
          return { kind: 'rows', rows, next: next ?? held.end, bounds: held };
        } finally {
          if (db.isTransaction) db.exec('COMMIT');
        }
      }, BUSY_MS),
  };
}
