/** Slows down connections that take one stream from each other in turn: more than 3 in 10 s wait before they attach. SPEC: GW-TAKEOVER. */
import { sleep } from '@throughline/log';
import type { Clock } from '@throughline/log';

const WINDOW_MS = 10_000;
const FREE_IN_WINDOW = 3;
const WAIT_MS = 1000;
const MAX_STREAMS = 10_000;

export class TakeoverLimit {
  readonly #clock: Clock;
  readonly #recent = new Map<string, readonly number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the connection may attach, or `signal` fires. */
  async admit(stream: string, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monoMs();
    const recent = (this.#recent.get(stream) ?? []).filter((time) => now - time < WINDOW_MS);
    // Only the newest matter, however many come.
    const times = [...recent, now].slice(-(FREE_IN_WINDOW + 1));
    // Re-inserting keeps the map in order of use, so the oldest goes first.
    this.#recent.delete(stream);
    this.#recent.set(stream, times);
    if (this.#recent.size > MAX_STREAMS) {
      const oldest = this.#recent.keys().next();
      if (oldest.done !== true) this.#recent.delete(oldest.value);
    }
    if (times.length > FREE_IN_WINDOW) await sleep(this.#clock, WAIT_MS, signal);
  }
}
