/** Membership of several processes in one file: a row a member, a division kept in the file, renewed in transactions. */
import type { DatabaseSync } from 'node:sqlite';
import type { Partition } from '@throughline/protocol';
import { assignSticky } from '../assign-sticky.ts';
import { prepareRows, writeTransaction } from './database.ts';

export interface LeaseTable {
  /**
   * Keeps the member's seat and removes those that did not keep theirs. `monoMs` of this process, never compared with
   * another's: a member is gone when its beat has not changed for a lease of our own time.
   */
  renew(group: string, member: string, wallMs: number, monoMs: number): void;
  leave(group: string, member: string): void;
  assignedTo(group: string, member: string): Partition[];
  /** Another number after each change of the division. */
  version(group: string): number;
}

const BUSY_MS = 1000;

export function createLeaseTable(db: DatabaseSync, partitions: number, leaseMs: number): LeaseTable {
  const beat = db.prepare(
    `INSERT INTO members VALUES (?, ?, 0, ?) ON CONFLICT DO UPDATE SET beat = beat + 1, wall_ms = excluded.wall_ms`,
  );
  const memberRows = prepareRows(db, 'SELECT member, beat, wall_ms FROM members WHERE "group" = ? ORDER BY member');
  const removeMember = db.prepare('DELETE FROM members WHERE "group" = ? AND member = ?');
  const assignmentRows = prepareRows(db, 'SELECT partition, member FROM assignments WHERE "group" = ?');
  const clearAssignments = db.prepare('DELETE FROM assignments WHERE "group" = ?');
  const assign = db.prepare(
    'INSERT INTO assignments VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET member = excluded.member',
  );
  const ownRows = prepareRows(
    db,
    'SELECT partition FROM assignments WHERE "group" = ? AND member = ? ORDER BY partition',
  );
  const bump = db.prepare('INSERT INTO groups VALUES (?, 1) ON CONFLICT DO UPDATE SET version = version + 1');
  const versionRow = prepareRows(db, 'SELECT version FROM groups WHERE name = ?');
  const seen = new Map<string, { beat: number; sinceMs: number }>();

  const isGone = (
    group: string,
    [member, count, wallMs]: [string, number, number],
    now: { wallMs: number; monoMs: number },
  ): boolean => {
    const key = `${group}\n${member}`;
    const last = seen.get(key);
    if (last?.beat === count) return now.monoMs - last.sinceMs >= leaseMs;
    seen.set(key, { beat: count, sinceMs: now.monoMs });
    // Never seen before and old by the wall clock: left by a process that was killed before we came. Later only beats count.
    return last === undefined && now.wallMs - wallMs >= leaseMs;
  };

  const divide = (group: string): void => {
    const members = (memberRows.all(group) as unknown as [string, number, number][]).map(([member]) => member);
    const current = new Map(assignmentRows.all(group) as unknown as [number, string][]);
    const wanted = assignSticky(members, partitions, current);
    if (wanted.size === current.size && [...wanted].every(([partition, member]) => current.get(partition) === member))
      return;
    if (wanted.size === 0) clearAssignments.run(group);
    for (const [partition, member] of wanted)
      if (current.get(partition) !== member) assign.run(group, partition, member);
    bump.run(group);
  };

  return {
    renew(group, member, wallMs, monoMs) {
      writeTransaction(
        db,
        () => {
          beat.run(group, member, wallMs);
          for (const row of memberRows.all(group) as unknown as [string, number, number][]) {
            if (row[0] === member || !isGone(group, row, { wallMs, monoMs })) continue;
            removeMember.run(group, row[0]);
            seen.delete(`${group}\n${row[0]}`);
          }
          divide(group);
        },
        BUSY_MS,
      );
    },
    leave(group, member) {
      writeTransaction(
        db,
        () => {
          removeMember.run(group, member);
          divide(group);
        },
        BUSY_MS,
      );
    },
    assignedTo: (group, member) =>
      (ownRows.all(group, member) as unknown as [number][]).map(([partition]) => partition),
    version: (group) => (versionRow.get(group) as unknown as [number] | undefined)?.[0] ?? 0,
  };
}
