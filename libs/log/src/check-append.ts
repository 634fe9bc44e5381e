/** What the embedded drivers refuse before anything is queued. Misuse throws; what depends on data is `APPEND_REFUSED`. */
import { COMPACTED_TOPICS, hasOnePartition } from '@throughline/protocol';
import type { Offset, Partition, RecordInput, Topic } from '@throughline/protocol';
import { LogError } from './errors.ts';
import type { LogDescription, PartitionRef } from './port.ts';
import { recordBytes } from './record-size.ts';

/** Partitions of a topic in a log of so many. */
export function partitionCount(topic: Topic, partitions: number): number {
  return hasOnePartition(topic) ? 1 : partitions;
}

export function isCompacted(topic: Topic): boolean {
  return COMPACTED_TOPICS.includes(topic);
}

/** Throws `RangeError` on a partition that the log does not have: a bug of the caller, not a state of the log. */
export function checkRef(ref: PartitionRef, partitions: number): void {
  const count = partitionCount(ref.topic, partitions);
  if (!Number.isInteger(ref.partition) || ref.partition < 0 || ref.partition >= count)
    throw new RangeError(`${ref.topic} has partitions 0 to ${count - 1}, not ${ref.partition}`);
}

/** Throws `RangeError` on what can be no offset. */
export function checkPosition(position: number): void {
  if (!Number.isSafeInteger(position) || position < 0) throw new RangeError(`${position} is no offset`);
}

/** Throws `LOG_UNAVAILABLE` for a partition that the member does not have: it may be about to lose it, or to get it. */
export function checkCommit(assigned: readonly Partition[], partition: Partition, offset: Offset): void {
  checkPosition(offset);
  if (!assigned.includes(partition))
    throw new LogError('LOG_UNAVAILABLE', `partition ${partition} is not assigned to this member`);
}

/** Bytes of the whole append; throws `APPEND_REFUSED` when the log would never take it. */
export function checkAppend(to: PartitionRef, records: readonly RecordInput[], description: LogDescription): number {
  if (records.length === 0) throw new RangeError('an append needs at least one record');
  let total = 0;
  for (const record of records) {
    const bytes = recordBytes(record);
    if (bytes > description.maxRecordBytes)
      throw new LogError(
        'APPEND_REFUSED',
        `a record of ${bytes} bytes is larger than the ${description.maxRecordBytes} that the log takes`,
        { reason: 'too-large' },
      );
    if (record.key === null && isCompacted(to.topic))
      throw new LogError('APPEND_REFUSED', `a record of ${to.topic} needs a key`, { reason: 'other' });
    total += bytes;
  }
  return total;
}
