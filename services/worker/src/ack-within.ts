/** A deadline for appends. */
import { LogError } from '@throughline/log';
import type { Clock } from '@throughline/log';

/** Settles as `append` does, or rejects with `APPEND_UNKNOWN` after `ms`: it may still land. */
export async function ackWithin<T>(clock: Clock, ms: number, append: Promise<T>): Promise<T> {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_resolve, reject) => {
    cancel = clock.setTimer(ms, () => {
      reject(new LogError('APPEND_UNKNOWN', `no ack within ${Math.round(ms)} ms`));
    });
  });
  append.catch(() => undefined);
  try {
    return await Promise.race([append, late]);
  } finally {
    cancel();
  }
}
