/** A token bucket for log lines whose rate a hosted server decides. */
import type { Clock } from '@throughline/log';

export interface LogLimiter {
  /** Whether a line may be logged now; counts it as dropped if not. */
  take(): boolean;
  /** The lines dropped since the last call of this. */
  takeDropped(): number;
}

export interface LogLimits {
  /** Lines a second in the long run. */
  readonly perSecond: number;
  /** Lines at once. */
  readonly burst: number;
}

export function createLogLimiter(clock: Clock, limits: LogLimits): LogLimiter {
  let tokens = limits.burst;
  let last = clock.monoMs();
  let dropped = 0;
  return {
    take() {
      const now = clock.monoMs();
      tokens = Math.min(limits.burst, tokens + ((now - last) / 1000) * limits.perSecond);
      last = now;
      if (tokens < 1) {
        dropped += 1;
        return false;
      }
      tokens -= 1;
      return true;
    },
    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
  };
}
