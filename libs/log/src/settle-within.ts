/** Waits with a deadline. */
import type { Clock } from './clock.ts';
import { LogError } from './errors.ts';

/** Settles as `work` does, or rejects with what `late` gives after `ms`; what comes after that is dropped. */
export async function settleWithin<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  let cancel = (): void => undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    cancel = clock.setTimer(ms, () => {
      reject(late());
    });
  });
  // What comes after the deadline is nobody's rejection.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, deadline]);
  } finally {
    cancel();
  }
}

/** Settles as `append` does, or rejects with `APPEND_UNKNOWN` after `ms`: it may still land. */
export function ackWithin<T>(clock: Clock, ms: number, append: Promise<T>): Promise<T> {
  const late = (): Error => new LogError('APPEND_UNKNOWN', `no ack within ${Math.round(ms)} ms`);
  return settleWithin(clock, ms, append, late);
}

/** Whether `work` settled, either way, within `ms`. Never rejects; leaves no timer behind. */
export function settlesWithin(clock: Clock, work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.setTimer(ms, () => {
      resolve(false);
    });
    const settle = (): void => {
      cancel();
      resolve(true);
    };
    work.then(settle, settle);
  });
}
