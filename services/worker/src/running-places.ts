/**
 * Places for running requests, over all partitions of a worker. Sessions that wait get them in turn, one each, so that
 * a busy session delays the others by one request, not by its whole queue. SPEC: WRK-PLACES.
 */

/** Uses the place it is offered and returns `true`, or has nothing to run and returns `false`. Must not throw. */
export type TakePlace = () => boolean;

export class RunningPlaces {
  readonly #max: number;
  readonly #waiting = new Map<object, TakePlace>();
  #taken = 0;
  #isHanding = false;

  constructor(max: number) {
    this.#max = max;
  }

  taken(): number {
    return this.#taken;
  }

  /** `who` has something to run: `take` is called when its turn comes, again and again until it returns `false`. */
  wait(who: object, take: TakePlace): void {
    if (!this.#waiting.has(who)) this.#waiting.set(who, take);
    this.#hand();
  }

  /** `who` wants nothing any more. */
  leave(who: object): void {
    this.#waiting.delete(who);
  }

  /** A place that was taken is free again. */
  free(count = 1): void {
    this.#taken -= count;
    this.#hand();
  }

  #hand(): void {
    if (this.#isHanding) return;
    this.#isHanding = true;
    while (this.#taken < this.#max) {
      const [first] = this.#waiting;
      if (first === undefined) break;
      const [who, take] = first;
      this.#waiting.delete(who);
      this.#taken++;
      if (!take()) this.#taken--;
      else if (!this.#waiting.has(who)) this.#waiting.set(who, take);
    }
    this.#isHanding = false;
  }
}
