/** Offsets that groups committed, kept among the settings of the file: no table that a former version would not know. */
import type { DatabaseSync } from 'node:sqlite';
import type { Offset, Partition } from '@throughline/protocol';
import { itemAt } from '../item-at.ts';
import { prepareRows, writeTransaction } from './database.ts';

export interface CommittedOffsets {
  /** Two numbers a partition: partition, offset. */
  write(group: string, offsets: readonly number[]): void;
  read(group: string): [Partition, Offset][];
}

/** Advisory, and written again soon: appends must not wait for it. */
const BUSY_MS = 20;

export function createCommittedOffsets(db: DatabaseSync, partitions: number): CommittedOffsets {
  const put = db.prepare('INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value');
  const get = prepareRows(db, 'SELECT value FROM settings WHERE name = ?');
  const nameOf = (group: string, partition: Partition): string => `committed/${group}/${partition}`;
  return {
    write(group, offsets) {
      writeTransaction(
        db,
        () => {
          for (let at = 0; at < offsets.length; at += 2)
            put.run(nameOf(group, itemAt(offsets, at)), itemAt(offsets, at + 1));
        },
        BUSY_MS,
      );
    },
    read: (group) =>
      Array.from({ length: partitions }, (_, partition) => partition).flatMap((partition): [Partition, Offset][] => {
        const row = get.get(nameOf(group, partition)) as unknown as [number] | undefined;
        return row === undefined ? [] : [[partition, row[0]]];
      }),
  };
}
