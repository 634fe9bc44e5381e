/**
 * How fast that is tried again which the log refuses, and how often that is told: a full disk may stay full for hours,
 * and each partition tries by itself. SPEC: WRK-RETRY-PACE.
 */
import { sleep } from '@throughline/log';
import type { Clock } from '@throughline/log';

const FIRST_MS = 250;
const LONGEST_MS = 2000;
const TELL_AGAIN_MS = 30_000;

export class RetryPace {
  readonly #clock: Clock;
  #waitMs = FIRST_MS;
  #toldMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Waits before the next try, twice as long as the last time; `tell` is called for the first failure, then once in 30 s. */
  async failed(tell: () => void, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monoMs();
    if (this.#toldMs === null || now - this.#toldMs >= TELL_AGAIN_MS) {
      this.#toldMs = now;
      tell();
    }
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(LONGEST_MS, 2 * waitMs);
    await sleep(this.#clock, waitMs, signal);
  }

  /** A try succeeded: the next failure is a first one. */
  succeeded(): void {
    this.#waitMs = FIRST_MS;
    this.#toldMs = null;
  }
}
