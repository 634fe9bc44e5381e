import type { PartitionRef } from '@throughline/log';

/** Names a partition among those of all topics. */
export function partitionName({ topic, partition }: PartitionRef): string {
  return `${topic}/${partition}`;
}
