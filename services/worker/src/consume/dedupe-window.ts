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

  /** A request at `offset` was taken in. */
  took(offset: Offset): void {
    const now = this.#clock.monoMs();
    const newest = this.#samples.at(-1);
    if (newest === undefined || now - newest.monoMs >= SAMPLE_MS) this.#samples.push({ offset, monoMs: now });
    while (this.#samples.length > 1 && now - (this.#samples[1]?.monoMs ?? now) > DEDUPE_MS) this.#samples.shift();
  }

  /** The lowest offset of the window; infinite if nothing was taken in. */
  from(): number {
    const now = this.#clock.monoMs();
    while (this.#samples.length > 0 && now - (this.#samples.at(-1)?.monoMs ?? now) > DEDUPE_MS) this.#samples.shift();
    return this.#samples[0]?.offset ?? Number.POSITIVE_INFINITY;
  }
}
