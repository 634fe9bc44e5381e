/** Retention and compaction, in short transactions so that appends of any process wait for milliseconds only. */
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '@throughline/protocol';
import { prepareRows, writeTransaction } from './database.ts';
import { recordId } from './slots.ts';

export interface Chores {
  /** False if another process has swept within `everyMs`. */
  claim(wallMs: number, everyMs: number): boolean;
  /** Removes some of what was appended before `beforeMs`; true when nothing is left to do. */
  evictOlder(slot: number, beforeMs: number): boolean;
  /** Moves the start towards `before`; true when it is there. */
  evictBefore(slot: number, before: Offset): boolean;
  /** Removes some of the superseded records and old tombstones that are due; true when none is left. */
  compact(dueMs: number): boolean;
  /** Makes superseded records due at once. Tombstones keep their time. */
  skipGrace(): void;
}

const BUSY_MS = 1000;
/** How long one step may hold the write lock. */
const STEP_MS = 8;
const CHUNK = 32;

export function createChores(db: DatabaseSync): Chores {
  const sweptRow = prepareRows(db, `SELECT value FROM settings WHERE name = 'swept_ms'`);
  const setSwept = db.prepare(
    `INSERT INTO settings VALUES ('swept_ms', ?) ON CONFLICT DO UPDATE SET value = excluded.value`,
  );
  const boundsRow = prepareRows(db, 'SELECT start, next FROM partitions WHERE slot = ?');
  const setStart = db.prepare('UPDATE partitions SET start = ? WHERE slot = ?');
  const timestampRow = prepareRows(db, 'SELECT timestamp_ms FROM records WHERE id = ?');
  const removeRange = db.prepare('DELETE FROM records WHERE id >= ? AND id < ?');
  const dueRows = prepareRows(db, `SELECT id FROM garbage WHERE due_ms <= ? ORDER BY due_ms LIMIT ${CHUNK}`);
  const removeRecord = db.prepare('DELETE FROM records WHERE id = ?');
  const removeGarbage = db.prepare('DELETE FROM garbage WHERE id = ?');
  const keyRow = prepareRows(db, 'SELECT key FROM records WHERE id = ?');
  const removeNewest = db.prepare('DELETE FROM newest WHERE slot = (? >> 43) AND key = ? AND id = ?');
  const hasten = db.prepare('UPDATE garbage SET due_ms = 0 WHERE id NOT IN (SELECT id FROM newest)');

  const bounds = (slot: number): [start: number, end: number] => boundsRow.get(slot) as unknown as [number, number];

  const evictBefore = (slot: number, before: Offset): boolean =>
    writeTransaction(
      db,
      () => {
        const until = performance.now() + STEP_MS;
        const [start, end] = bounds(slot);
        const target = Math.min(before, end);
        let at = start;
        while (at < target && performance.now() < until) {
          const to = Math.min(at + CHUNK, target);
          removeRange.run(recordId(slot, at), recordId(slot, to));
          at = to;
        }
        if (at > start) setStart.run(at, slot);
        return at >= target;
      },
      BUSY_MS,
    );

  /** Timestamps never go back within a partition, and these topics have no holes: a binary search finds the border. */
  const firstSince = (slot: number, sinceMs: number): Offset => {
    let [low, high] = bounds(slot);
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = timestampRow.get(recordId(slot, middle)) as unknown as [number] | undefined;
      if (row !== undefined && row[0] < sinceMs) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  return {
    claim: (wallMs, everyMs) =>
      writeTransaction(
        db,
        () => {
          const last = (sweptRow.get() as unknown as [number] | undefined)?.[0];
          // A time ahead of ours was written before the clock was set back: it must not stop sweeping.
          if (last !== undefined && last <= wallMs && wallMs - last < everyMs) return false;
          setSwept.run(wallMs);
          return true;
        },
        BUSY_MS,
      ),
    evictBefore,
    evictOlder(slot, beforeMs) {
      const [start] = bounds(slot);
      const first = firstSince(slot, beforeMs);
      return first <= start || evictBefore(slot, first);
    },
    compact: (dueMs) =>
      writeTransaction(
        db,
        () => {
          const until = performance.now() + STEP_MS;
          while (performance.now() < until) {
            const due = dueRows.all(dueMs) as unknown as [number][];
            if (due.length === 0) return true;
            for (const [id] of due) {
              const row = keyRow.get(id) as unknown as [Uint8Array] | undefined;
              if (row !== undefined) removeNewest.run(id, row[0], id);
              removeRecord.run(id);
              removeGarbage.run(id);
            }
          }
          return false;
        },
        BUSY_MS,
      ),
    skipGrace() {
      writeTransaction(db, () => hasten.run(), BUSY_MS);
    },
  };
}
