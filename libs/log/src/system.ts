/** The real clock and the real chance. Used by `services/cli` and by tests of drivers. */
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from './clock.ts';

/** Node fires a timer that is longer than this, 24.8 days, after a millisecond. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  setTimer(ms, run) {
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      timer =
        leftMs > LONGEST_TIMEOUT_MS
          ? setTimeout(() => {
              wait(leftMs - LONGEST_TIMEOUT_MS);
            }, LONGEST_TIMEOUT_MS)
          : setTimeout(run, leftMs);
    };
    wait(ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  unit: () => Math.random(),
};
