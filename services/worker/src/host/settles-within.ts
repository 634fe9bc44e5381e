/** The plainest wait with a deadline. */
import { deadline } from '@throughline/log';
import type { Clock } from '@throughline/log';

/** Whether `work` settled, either way, within `ms`. Never rejects; leaves no timer behind. */
export function settlesWithin(clock: Clock, work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const limit = deadline(clock, ms);
    const settle = (): void => {
      limit.dispose();
      resolve(true);
    };
    limit.signal.addEventListener('abort', () => {
      limit.dispose();
      resolve(false);
    });
    work.then(settle, settle);
  });
}
