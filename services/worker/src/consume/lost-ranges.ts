/**
 * The requests that retention took before this owner, or one before it, could serve them: what checkpoints say of them,
 * for as long as a client could still come back to their streams. SPEC: WRK-LOST.
 */
import type { LostRequests, Offset } from '@throughline/protocol';

/** Far above the open requests of a partition; what is beyond it is not told any more. */
const MOST_RANGES = 4096;

export class LostRanges {
  #ranges: LostRequests[] = [];
  #inherited: readonly LostRequests[] = [];

  /** What the newest checkpoint of a former owner says. */
  inherit(ranges: readonly LostRequests[]): void {
    this.#ranges = [...ranges];
    this.#inherited = ranges;
  }

  has(at: Offset): boolean {
    return this.#ranges.some(({ from, to }) => from <= at && at < to);
  }

  /** Whether a former owner had found it lost. */
  wasInherited(at: Offset): boolean {
    return this.#inherited.some(({ from, to }) => from <= at && at < to);
  }

  /**
   * Nothing of `inbound` in [`from`, `to`) will be served.
   * @param since the position of `events` now.
   */
  add(from: Offset, to: Offset, since: Offset): void {
    if (from >= to) return;
    const last = this.#ranges.at(-1);
    if (last !== undefined && last.to === from && last.since === since)
      this.#ranges[this.#ranges.length - 1] = { ...last, to };
    else this.#ranges.push({ from, to, since });
    if (this.#ranges.length > MOST_RANGES) this.#ranges.shift();
  }

  /**
   * What is still to be told.
   * @param heldFrom the first offset of `events` that is held: who stands before it is refused anyway.
   */
  told(heldFrom: Offset): readonly LostRequests[] {
    this.#ranges = this.#ranges.filter(({ since }) => since >= heldFrom);
    return [...this.#ranges];
  }
}
