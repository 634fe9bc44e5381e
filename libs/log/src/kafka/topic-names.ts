import type { Topic } from '@throughline/protocol';

export const DEFAULT_PREFIX = 'throughline';

/** Letters that Kafka takes in a topic name. Throws `TypeError`. */
export function checkPrefix(prefix: string): void {
  if (!/^[A-Za-z0-9._-]{1,200}$/.test(prefix))
    throw new TypeError(`prefix: "${prefix}" may have letters, digits, dot, underscore and hyphen only`);
}

export function topicName(prefix: string, topic: Topic): string {
  return `${prefix}.${topic}`;
}

/** Of its own a prefix: members of two prefixes in one group would divide each other's partitions. */
export function groupName(prefix: string, group: string): string {
  return `${prefix}.${group}`;
}
