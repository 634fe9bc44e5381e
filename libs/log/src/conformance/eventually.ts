import { sleep } from '../clock.ts';
import type { Clock } from '../clock.ts';

/** Waits until `check` holds; throws with what was expected when `ms` are over. */
export async function eventually(
  clock: Clock,
  what: string,
  check: () => boolean | Promise<boolean>,
  ms = 10_000,
): Promise<void> {
  const untilMs = clock.monoMs() + ms;
  while (!(await check())) {
    if (clock.monoMs() >= untilMs) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(clock, 5);
  }
}
