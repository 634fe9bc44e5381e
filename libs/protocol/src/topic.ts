/** The five topics; `<prefix>.` is put before their names on Kafka. */
export const TOPICS = ['inbound', 'events', 'sessions', 'meta', 'dead-letter'] as const;
export type Topic = (typeof TOPICS)[number];

/** `meta` and `dead-letter` have one partition; the others as many as the log was made with. */
export function hasOnePartition(topic: Topic): boolean {
  return topic === 'meta' || topic === 'dead-letter';
}

/** Topics of which only the newest record of a key counts. */
export const COMPACTED_TOPICS: readonly Topic[] = ['sessions', 'meta'];

/** What keys of `meta` begin with, by what they say. */
export const META_PREFIX = {
  epoch: 'epoch/',
  mark: 'mark/',
  checkpoint: 'checkpoint/',
  worker: 'worker/',
} as const;

/** Keys of `meta` and `sessions`. */
export const META_KEY = {
  epoch: (token: string): string => `${META_PREFIX.epoch}${token}`,
  mark: (epoch: string, topic: Topic, partition: number): string => `${META_PREFIX.mark}${epoch}/${topic}/${partition}`,
  checkpoint: (epoch: string, partition: number): string => `${META_PREFIX.checkpoint}${epoch}/${partition}`,
  worker: (worker: string): string => `${META_PREFIX.worker}${worker}`,
  /** Embedded logs only: the secret that signs session ids. */
  secret: 'secret',
} as const;

/** The record of a session's end, which nothing overwrites. */
export function sessionEndKey(key: string): string {
  return `${key}/end`;
}

/** Kafka takes names of 249 characters of these; the longest topic adds `.dead-letter`. */
const TOPIC_PREFIX = /^[A-Za-z0-9._-]{1,200}$/;

/** Whether the topics of a log may be called `<text>.inbound` and so on where topics have names, as on Kafka. */
export function isTopicPrefix(text: string): boolean {
  return TOPIC_PREFIX.test(text);
}
