/** Bounds the bytes of POST bodies held at once, over all requests: each may be large, and there may be many. SPEC: GW-LIMIT. */
export class BodyBudget {
  readonly #limit: number;
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Room for a body of `bytes`, or `null`. Returns the way to give it back, idempotent. */
  take(bytes: number): (() => void) | null {
    if (this.#taken + bytes > this.#limit) return null;
    this.#taken += bytes;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= bytes;
    };
  }
}
