import { describe, expect, it } from 'vitest';
import { isTopicPrefix, TOPICS } from './topic.ts';

/** Longest name of a topic that Kafka takes. */
const LONGEST = 249;

describe('isTopicPrefix', () => {
  it('[KAFKA-OPTIONS] a prefix has the letters of topic names, and leaves room for the longest topic', () => {
    for (const prefix of ['throughline', 'team-a.eu_1', 'A', 'a'.repeat(200)]) {
      expect(isTopicPrefix(prefix), prefix).toBe(true);
      for (const topic of TOPICS) expect(`${prefix}.${topic}`.length).toBeLessThanOrEqual(LONGEST);
    }
    for (const prefix of ['', 'a/b', 'a b', 'é', 'a\n', 'a'.repeat(201)])
      expect(isTopicPrefix(prefix), prefix).toBe(false);
  });
});
