/**
 * Where to read next when many wait for older records, each from its own place. Rounds go up the log: everyone who waits
 * when a round begins is served in it, lowest place first, so that what many need is read once; who comes meanwhile
 * waits for the next round, unless one more record span takes it along to where the round goes next. So nobody is
 * passed over, and a reader that goes on behind its chunk rides along. Pure. SPEC: TAIL-ROUNDS.
 */
import type { Offset } from '@throughline/protocol';

export interface Placed {
  readonly position: Offset;
}

export class CatchUpOrder<T extends Placed> {
  /** Of this round, still to be served, highest first. */
  #round: T[] = [];
  readonly #arrivals = new Set<T>();
  /** Offsets that the last read covered: what one more read is likely to cover. */
  #span = 0;

  add(waiter: T): void {
    this.#arrivals.add(waiter);
  }

  /** Whoever gives up. */
  remove(waiter: T): void {
    if (!this.#arrivals.delete(waiter)) this.#round = this.#round.filter((other) => other !== waiter);
  }

  isEmpty(): boolean {
    return this.#round.length === 0 && this.#arrivals.size === 0;
  }

  /** The place to read from; `null` if nobody waits. */
  next(): Offset | null {
    if (this.#round.length === 0) {
      this.#round = [...this.#arrivals].sort((a, b) => b.position - a.position);
      this.#arrivals.clear();
    }
    const goal = this.#round.at(-1);
    if (goal === undefined) return null;
    let from = goal.position;
    for (const { position } of this.#arrivals)
      if (position < from && position > goal.position - this.#span) from = position;
    return from;
  }

  /** Everyone who waits at `from` or between it and `next`, which was read; they wait no longer. */
  take(from: Offset, next: Offset): readonly T[] {
    this.#span = next - from;
    const isServed = ({ position }: T): boolean => position === from || (position > from && position < next);
    const served = this.#round.filter(isServed).reverse();
    if (served.length > 0) this.#round = this.#round.filter((waiter) => !isServed(waiter));
    for (const waiter of this.#arrivals) {
      if (!isServed(waiter)) continue;
      this.#arrivals.delete(waiter);
      served.push(waiter);
    }
    return served;
  }

  takeAll(): readonly T[] {
    const all = [...this.#round.reverse(), ...this.#arrivals];
    this.#round = [];
    this.#arrivals.clear();
    return all;
  }
}
