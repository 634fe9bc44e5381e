import { isTopicPrefix } from '@throughline/protocol';
import type { Topic } from '@throughline/protocol';

export const DEFAULT_PREFIX = 'throughline';

/** Throws `TypeError`. */
export function checkPrefix(prefix: string): void {
  if (!isTopicPrefix(prefix))
    throw new TypeError(
      `prefix: "${prefix}" must be up to 200 letters, digits, dots, underscores and hyphens, and not empty`,
    );
}

export function topicName(prefix: string, topic: Topic): string {
  return `${prefix}.${topic}`;
}

/** Of its own a prefix: members of two prefixes in one group would divide each other's partitions. */
export function groupName(prefix: string, group: string): string {
  return `${prefix}.${group}`;
}
