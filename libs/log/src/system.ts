/** The real clock and the real chance. Used by `services/cli` and by tests of drivers. */
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from './clock.ts';

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  setTimer(ms, run) {
    const timer = setTimeout(run, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  unit: () => Math.random(),
};
