/** Group commit: the appends that wait go into one transaction, and one fsync makes all of them durable. */
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '@throughline/protocol';
import { prepareRows } from './database.ts';
import type { Fault, InjectedFault } from './messages.ts';
import { readFramed } from './record-codec.ts';
import type { FramedRecord } from './record-codec.ts';
import { recordId } from './slots.ts';
import { errorText } from '../errors.ts';
import { isBusy, refusedFault, SQLITE, sqliteCode } from './sqlite-error.ts';

export interface QueuedAppend {
  readonly id: number;
  readonly slot: number;
  readonly bytes: Buffer;
  readonly at: number;
  readonly count: number;
  readonly size: number;
  readonly wallMs: number;
  /** Of `performance.now()`: until then it may wait for other processes' writes. */
  readonly deadlineMs: number;
}

export interface SlotAppend {
  readonly first: Offset;
  readonly next: Offset;
}

export type AppendOutcome =
  /** Another process writes now; nothing was done. */
  | { readonly kind: 'busy' }
  /** `acks`: id, first offset, timestamp an append; `slots`: what each slot got. */
  | { readonly kind: 'committed'; readonly acks: number[]; readonly slots: ReadonlyMap<number, SlotAppend> }
  | { readonly kind: 'failed'; readonly fault: Fault };

export interface Appender {
  inject(fault: InjectedFault | null): void;
  append(group: readonly QueuedAppend[]): AppendOutcome;
}

export function createAppender(
  db: DatabaseSync,
  options: {
    readonly isCompactedSlot: (slot: number) => boolean;
    readonly retentionMs: number;
    readonly graceMs: number;
    readonly hasCap: boolean;
  },
): Appender {
  const slotRow = prepareRows(db, 'SELECT next, last_ms FROM partitions WHERE slot = ?');
  const updateSlot = db.prepare('UPDATE partitions SET next = ?, last_ms = ? WHERE slot = ?');
  const insert = db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?)');
  const newestRow = prepareRows(db, 'SELECT id FROM newest WHERE slot = ? AND key = ?');
  const setNewest = db.prepare('INSERT INTO newest VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET id = excluded.id');
  const setGarbage = db.prepare(
    'INSERT INTO garbage VALUES (?, ?) ON CONFLICT DO UPDATE SET due_ms = min(due_ms, excluded.due_ms)',
  );
  const pages = ['page_count', 'max_page_count', 'freelist_count', 'page_size'].map((name) =>
    prepareRows(db, `PRAGMA ${name}`),
  );
  let injected: InjectedFault | null = null;

  /** Keeps, for each key of a compacted topic, which record counts and which ones compaction may remove, and when. */
  const supersede = (slot: number, id: number, record: FramedRecord, timestampMs: number): void => {
    const key = record.key ?? new Uint8Array(0);
    const before = newestRow.get(slot, key) as unknown as [number] | undefined;
    if (before !== undefined) setGarbage.run(before[0], timestampMs + options.graceMs);
    if (record.value === null) setGarbage.run(id, timestampMs + options.retentionMs);
    setNewest.run(slot, key, id);
  };

  const write = (group: readonly QueuedAppend[]): { acks: number[]; slots: Map<number, SlotAppend> } => {
    const acks: number[] = [];
    const slots = new Map<number, { first: Offset; next: Offset; lastMs: number }>();
    for (const queued of group) {
      const { slot } = queued;
      let state = slots.get(slot);
      if (state === undefined) {
        const [next, lastMs] = slotRow.get(slot) as unknown as [number, number];
        state = { first: next, next, lastMs };
        slots.set(slot, state);
      }
      const timestampMs = Math.max(state.lastMs, queued.wallMs);
      state.lastMs = timestampMs;
      acks.push(queued.id, state.next, timestampMs);
      for (const record of readFramed(queued.bytes, queued.at, queued.count)) {
        const id = recordId(slot, state.next++);
        insert.run(id, timestampMs, record.key, record.value, record.headers.length === 0 ? null : record.headers);
        if (options.isCompactedSlot(slot)) supersede(slot, id, record, timestampMs);
      }
    }
    for (const [slot, state] of slots) updateSlot.run(state.next, state.lastMs, slot);
    return { acks, slots };
  };

  const rollback = (): void => {
    try {
      if (db.isTransaction) db.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back by itself, or will when the file is opened again; the outcome is reported already.
    }
  };

  /** A full file under a cap and a full disk are one code of SQLite: told apart by what room the cap leaves. */
  const hasReachedCap = (group: readonly QueuedAppend[]): boolean => {
    if (!options.hasCap) return false;
    const [count = 0, max = 0, free = 0, pageBytes = 0] = pages.map((each) => (each.get() as unknown as [number])[0]);
    const wanted = group.reduce((sum, queued) => sum + queued.size, 0);
    return (max - count + free) * pageBytes < wanted * 1.25 + 64 * pageBytes;
  };

  return {
    inject(fault) {
      injected = fault;
    },
    append(group) {
      try {
        db.exec('BEGIN IMMEDIATE');
      } catch (error) {
        return isBusy(error) ? { kind: 'busy' } : { kind: 'failed', fault: refusedFault(error, false) };
      }
      let written: { acks: number[]; slots: Map<number, SlotAppend> };
      try {
        written = write(group);
        if (injected === 'disk-full') throw Object.assign(new Error('injected'), { errcode: SQLITE.full });
      } catch (error) {
        rollback();
        return { kind: 'failed', fault: refusedFault(error, injected === null && hasReachedCap(group)) };
      }
      try {
        if (injected === 'unknown-lost') throw new Error('injected');
        db.exec('COMMIT');
        if (injected === 'unknown-stored') throw new Error('injected');
      } catch (error) {
        rollback();
        const code = sqliteCode(error);
        // The frame that commits was not written whole: nothing of this is in the log.
        if (code === SQLITE.full || isBusy(error))
          return { kind: 'failed', fault: refusedFault(error, hasReachedCap(group)) };
        // Written, perhaps, but not known to be on the disk: a crash may bring it back.
        return {
          kind: 'failed',
          fault: { code: 'APPEND_UNKNOWN', message: `the commit failed: ${errorText(error)}`, details: {} },
        };
      }
      return { kind: 'committed', ...written };
    },
  };
}
