/** What a store holds at most. SPEC: EVS-BOUND. */
export interface EventStoreLimits {
  /** Sessions that are open in this process. Default 10,000. */
  readonly maxSessions?: number;
  /** Characters of messages that wait for their acks, over all sessions. Default 64 Mi. */
  readonly maxWaitingChars?: number;
  /** Streams of a session whose place is remembered; the one that was used least recently goes. Default 1000. */
  readonly maxStreams?: number;
  /** Messages of one replay: the SDK holds all of them in memory. Default 10,000. */
  readonly maxReplayEvents?: number;
  /** Characters of one replay. Default 16 Mi. */
  readonly maxReplayChars?: number;
  /** Milliseconds for a replay, and for finding the place of a stream. Default 30,000. */
  readonly replayMs?: number;
}

export type Limits = Required<EventStoreLimits>;

const MI = 1024 * 1024;

export function withDefaults(limits: EventStoreLimits): Limits {
  const all: Limits = {
    maxSessions: 10_000,
    maxWaitingChars: 64 * MI,
    maxStreams: 1000,
    maxReplayEvents: 10_000,
    maxReplayChars: 16 * MI,
    replayMs: 30_000,
    ...limits,
  };
  for (const [name, value] of Object.entries(all))
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`limits.${name} must be an integer from 1`);
  return all;
}
