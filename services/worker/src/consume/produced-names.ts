/** The names of messages of producers that came within the last minute, by the clock of the log. SPEC: PRD-ONCE, PRD-NAMES. */
import { DEDUPE_MS } from './dedupe-window.ts';

const MAX_NAMES = 262_144;

export class ProducedNames {
  readonly #max: number;
  /** When the log took the first message of each name; in the order of the log. */
  readonly #names = new Map<string, number>();

  /** @param max names that are remembered; beyond, the oldest are forgotten early. */
  constructor(max = MAX_NAMES) {
    this.#max = max;
  }

  /** Whether a message of this name had come; from now on it has. */
  meet(name: string, timestampMs: number): boolean {
    if (this.#names.has(name)) return true;
    this.#names.set(name, timestampMs);
    for (const [oldest, cameMs] of this.#names) {
      if (this.#names.size <= this.#max && timestampMs - cameMs <= DEDUPE_MS) break;
      this.#names.delete(oldest);
    }
    return false;
  }
}
