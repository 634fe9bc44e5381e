/** A deadline for appends. */
import type { Clock } from './clock.ts';
import { LogError } from './errors.ts';

/** Settles as `append` does, or rejects with `APPEND_UNKNOWN` after `ms`: it may still land. */
export async function ackWithin<T>(clock: Clock, ms: number, append: Promise<T>): Promise<T> {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_resolve, reject) => {
    cancel = clock.setTimer(ms, () => {
      reject(new LogError('APPEND_UNKNOWN', `no ack within ${Math.round(ms)} ms`));
    });
  });
  // What comes after the deadline is nobody's rejection.
  append.catch(() => undefined);
  try {
    return await Promise.race([append, late]);
  } finally {
    cancel();
  }
}
