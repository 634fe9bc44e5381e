/** A buffer with a bound: room for so many bytes, and for so many who wait for room. SPEC: PRD-BOUND. */
import { abortable } from '@throughline/log';

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

export class Room {
  readonly #maxBytes: number;
  readonly #maxWaiting: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(maxBytes: number, maxWaiting: number) {
    this.#maxBytes = maxBytes;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Takes room, at once or in turn; `false` if there is none and nobody more may wait, or `wait` is false. One that is
   * larger than all of it gets it when it is alone. Rejects with `ABORTED` when `signal` fires.
   */
  async take(bytes: number, wait: boolean, signal: AbortSignal): Promise<boolean> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#taken += bytes;
      return true;
    }
    if (!wait || this.#waiting.length >= this.#maxWaiting) return false;
    const { promise, resolve } = Promise.withResolvers<true>();
    const waiting: Waiting = {
      bytes,
      grant: () => {
        this.#taken += bytes;
        resolve(true);
      },
    };
    this.#waiting.push(waiting);
    try {
      return await abortable(promise, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      // It was granted in the same moment: nobody else would give it back.
      else this.free(bytes);
      throw error;
    }
  }

  free(bytes: number): void {
    this.#taken -= bytes;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      next.grant();
    }
  }

  #fits(bytes: number): boolean {
    return this.#taken === 0 || this.#taken + bytes <= this.#maxBytes;
  }
}
