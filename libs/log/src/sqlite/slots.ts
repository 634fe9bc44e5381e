/** Where a record lies in the file: one integer for topic and partition, one for that and the offset. Part of format v1. */
import type { Offset } from '@throughline/protocol';
import type { PartitionRef } from '../port.ts';

/** `records.id` = slot × 2^43 + offset: below 2^53 for 1,024 slots and 8.8 × 10^12 offsets each. */
export const OFFSET_SPAN = 2 ** 43;
/** Three topics of 256 partitions and two of one stay below 1,024 slots. */
export const MAX_PARTITIONS = 256;

/** Topics in slot order; the order is in every file. */
const WIDE = ['inbound', 'events', 'sessions'] as const;
const SINGLE = ['meta', 'dead-letter'] as const;

export function slotOf({ topic, partition }: PartitionRef, partitions: number): number {
  switch (topic) {
    case 'inbound':
      return partition;
    case 'events':
      return partitions + partition;
    case 'sessions':
      return 2 * partitions + partition;
    case 'meta':
      return 3 * partitions;
    case 'dead-letter':
      return 3 * partitions + 1;
  }
}

export function slotCount(partitions: number): number {
  return WIDE.length * partitions + SINGLE.length;
}

/** Every partition of a log, in slot order. */
export function allRefs(partitions: number): PartitionRef[] {
  const wide = WIDE.flatMap((topic) => Array.from({ length: partitions }, (_, partition) => ({ topic, partition })));
  return [...wide, ...SINGLE.map((topic) => ({ topic, partition: 0 }))];
}

export function recordId(slot: number, offset: Offset): number {
  return slot * OFFSET_SPAN + offset;
}
