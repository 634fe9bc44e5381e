/** How often the file is looked at for commits of other processes: each millisecond while something happens, seldom when not. */

export interface PollPace {
  /** Something happened. */
  active(): void;
  /** How long to sleep until the next look; Infinity: until a message comes. */
  sleepMs(isWatched: boolean, isMember: boolean): number;
}

const BUSY = { untilMs: 250, everyMs: 1 } as const;
const CALM = { untilMs: 3000, everyMs: 4 } as const;
const IDLE_MS = 15;
/** Nobody waits for records, but a group may be divided anew. */
const MEMBER_MS = 50;

export function createPollPace(nowMs: () => number = () => performance.now()): PollPace {
  let activeMs = nowMs();
  return {
    active() {
      activeMs = nowMs();
    },
    sleepMs(isWatched, isMember) {
      if (!isWatched) return isMember ? MEMBER_MS : Infinity;
      const idleMs = nowMs() - activeMs;
      if (idleMs < BUSY.untilMs) return BUSY.everyMs;
      return idleMs < CALM.untilMs ? CALM.everyMs : IDLE_MS;
    },
  };
}
