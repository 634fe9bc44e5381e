/** Waits that end: by a condition, or by a deadline that says what was waited for. */
import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 10;

/** Resolves with the first value of `probe` that is neither `undefined`, `null` nor `false`. Rejects after `deadlineMs`. */
export async function waitUntil<T>(
  what: string,
  probe: () => T | Promise<T>,
  deadlineMs = 15_000,
): Promise<Exclude<T, undefined | null | false>> {
  const until = performance.now() + deadlineMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== null && value !== false) return value as Exclude<T, undefined | null | false>;
    if (performance.now() >= until) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await pause(POLL_MS);
  }
}

/** `work`, or a rejection after `deadlineMs` that names `what`. A call that hangs is a finding of its own. */
export async function within<T>(what: string, work: Promise<T>, deadlineMs = 15_000): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`${what}: hangs for ${deadlineMs} ms`));
    }, deadlineMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
