/**
 * Reads of what was said before, for those who would otherwise fail a call for a log that does not answer for a moment.
 * SPEC: WRK-ALIAS, WRK-MEMORY.
 */
import { hasLogCode, sleep } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';

/** Longer than one read that hangs, and shorter than clients commonly wait. */
const PATIENCE_MS = 40_000;
const RETRY_MS = 250;

/** Each read is tried again for up to 40 s while it fails with `LOG_UNAVAILABLE`. Errors: those of `Log.read`. */
export function readPatiently(log: Pick<Log, 'read'>, clock: Clock): Pick<Log, 'read'> {
  return {
    async read(from, position, options) {
      const untilMs = clock.monoMs() + PATIENCE_MS;
      for (;;) {
        try {
          return await log.read(from, position, options);
        } catch (error) {
          if (!hasLogCode(error, 'LOG_UNAVAILABLE') || clock.monoMs() >= untilMs) throw error;
          await sleep(clock, RETRY_MS, options?.signal);
        }
      }
    },
  };
}
