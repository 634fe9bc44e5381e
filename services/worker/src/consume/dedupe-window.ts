/** Which part of `inbound` a successor has to read again to know the request ids of the last minute. SPEC: WRK-DEDUPE. */
import type { Clock } from '@throughline/log';
import type { Offset } from '@throughline/protocol';

/** How long a repeated request is recognized at least. */
export const DEDUPE_MS = 60_000;
const SAMPLE_MS = 1000;

export class DedupeWindow {
  readonly #clock: Clock;
  readonly #samples: { readonly offset: Offset; readonly monoMs: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request at `offset` was taken in, `ageMs` after it had come; offsets and times rise. */
  took(offset: Offset, ageMs = 0): void {
    const cameMs = this.#clock.monoMs() - Math.max(0, ageMs);
    const newest = this.#samples.at(-1);
    if (newest === undefined || cameMs - newest.monoMs >= SAMPLE_MS) this.#samples.push({ offset, monoMs: cameMs });
    this.#forget();
  }

  /** The lowest offset of the window; infinite if nothing was taken in. */
  from(): number {
    this.#forget();
    return this.#samples[0]?.offset ?? Number.POSITIVE_INFINITY;
  }

  /** A sample stands for what came up to a second after it. */
  #forget(): void {
    const before = this.#clock.monoMs() - DEDUPE_MS - SAMPLE_MS;
    while (this.#samples[0] !== undefined && this.#samples[0].monoMs < before) this.#samples.shift();
  }
}
