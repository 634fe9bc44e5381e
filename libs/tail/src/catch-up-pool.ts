/** Bounds how many reads of older events run at once; the others wait in order. SPEC: TAIL-POOL. */
import { LogError } from '@throughline/log';

export class CatchUpPool {
  readonly #limit: number;
  readonly #queue: (() => void)[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs `work` when a place is free. Rejects with `ABORTED` if `signal` fires while it waits. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#running >= this.#limit) await this.#enter(signal);
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** The place is handed over by whoever leaves: the count does not change. */
  #enter(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        const place = this.#queue.indexOf(enter);
        if (place >= 0) this.#queue.splice(place, 1);
        reject(new LogError('ABORTED', 'the read was aborted while it waited'));
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.push(enter);
    });
  }
}
