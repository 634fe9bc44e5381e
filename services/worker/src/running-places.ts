/**
 * Places for running requests, over all partitions of a worker. Principals that wait get them in turn, and the sessions
 * of each in turn, one each: a busy session delays the others by one request, not by its whole queue, and a principal
 * with many sessions no other principal by more than one. SPEC: WRK-PLACES, WRK-PLACES-PRINCIPAL.
 */

/** Uses the place it is offered and returns `true`, or has nothing to run and returns `false`. Must not throw. */
export type TakePlace = () => boolean;

/** Who has a session that waits. */
export interface PlaceSeeker {
  readonly principal: string;
}

interface Principal {
  taken: number;
  readonly waiting: Map<PlaceSeeker, TakePlace>;
}

export class RunningPlaces {
  readonly #max: number;
  readonly #maxPerPrincipal: number;
  /** Those that hold places, or wait for one. */
  readonly #principals = new Map<string, Principal>();
  /** In the order of their turns: those that wait and may have more. */
  readonly #turns = new Set<string>();
  #taken = 0;
  #isHanding = false;
  /** Whose turn it is: not forgotten while it takes its place, whatever it gives back meanwhile. */
  #inTurn: string | null = null;

  /** @param maxPerPrincipal of `max`. Default: all of them. */
  constructor(max: number, maxPerPrincipal = max) {
    this.#max = max;
    this.#maxPerPrincipal = maxPerPrincipal;
  }

  taken(): number {
    return this.#taken;
  }

  /** `who` has something to run: `take` is called when its turn comes, again and again until it returns `false`. */
  wait(who: PlaceSeeker, take: TakePlace): void {
    const principal = this.#of(who);
    if (!principal.waiting.has(who)) principal.waiting.set(who, take);
    this.#queue(who.principal, principal);
    this.#hand();
  }

  /** `who` wants nothing any more. */
  leave(who: PlaceSeeker): void {
    const principal = this.#of(who);
    principal.waiting.delete(who);
    this.#queue(who.principal, principal);
  }

  /** A place that `who` had taken is free again. */
  free(who: PlaceSeeker, count = 1): void {
    const principal = this.#of(who);
    this.#taken -= count;
    principal.taken -= count;
    this.#queue(who.principal, principal);
    this.#hand();
  }

  #of({ principal: name }: PlaceSeeker): Principal {
    let principal = this.#principals.get(name);
    if (principal === undefined) this.#principals.set(name, (principal = { taken: 0, waiting: new Map() }));
    return principal;
  }

  /** Gives `name` a turn if it may have one; forgets it if it has nothing and wants nothing. */
  #queue(name: string, { taken, waiting }: Principal): void {
    if (waiting.size === 0 || taken >= this.#maxPerPrincipal) this.#turns.delete(name);
    else this.#turns.add(name);
    if (waiting.size === 0 && taken === 0 && name !== this.#inTurn) this.#principals.delete(name);
  }

  #hand(): void {
    if (this.#isHanding) return;
    this.#isHanding = true;
    while (this.#taken < this.#max) {
      const [name] = this.#turns;
      const principal = name === undefined ? undefined : this.#principals.get(name);
      if (name === undefined || principal === undefined) break;
      this.#turns.delete(name);
      this.#inTurn = name;
      this.#handTo(principal);
      this.#inTurn = null;
      // Also while it took its place something may have been given back, or somebody have left.
      this.#queue(name, principal);
    }
    this.#isHanding = false;
  }

  #handTo(principal: Principal): void {
    const [first] = principal.waiting;
    if (first === undefined) return;
    const [who, take] = first;
    principal.waiting.delete(who);
    this.#taken++;
    principal.taken++;
    if (!take()) {
      this.#taken--;
      principal.taken--;
    } else if (!principal.waiting.has(who)) principal.waiting.set(who, take);
  }
}
