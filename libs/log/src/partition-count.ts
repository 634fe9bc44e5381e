/** How many partitions one handle of a log knows of: only ever more. SPEC: LOG-GROWN. */
export class PartitionCount {
  #known: number;
  readonly #listeners = new Set<() => void>();

  constructor(known: number) {
    this.#known = known;
  }

  known(): number {
    return this.#known;
  }

  /** Fewer than are known changes nothing. */
  learn(count: number): void {
    if (count <= this.#known) return;
    this.#known = count;
    for (const tell of [...this.#listeners]) tell();
  }

  /** Returns the way to stop it. */
  onGrown(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}
