/** Writes the place to the store: one write at a time, the newest state last, none in between. SPEC: CLIENT-STORE. */
import type { CheckpointStore } from './checkpoint-store.ts';
import { TransportError } from './client-errors.ts';

export class PlaceKeeper {
  readonly #store: CheckpointStore;
  readonly #key: string;
  readonly #onError: (error: TransportError) => void;
  #wanted: (() => string | null) | null = null;
  #writing: Promise<void> | null = null;

  constructor(store: CheckpointStore, key: string, onError: (error: TransportError) => void) {
    this.#store = store;
    this.#key = key;
    this.#onError = onError;
  }

  /** `undefined`: nothing is kept, or it could not be read, which is told. */
  async load(): Promise<string | undefined> {
    try {
      return await this.#store.load(this.#key);
    } catch (cause) {
      this.#onError(new TransportError('STORE', 'The checkpoint could not be read; a new session is begun', { cause }));
      return undefined;
    }
  }

  /** `text` is asked for when it is written; `null` removes what is kept. */
  saveSoon(text: () => string | null): void {
    this.#wanted = text;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
  }

  /** Resolves when everything wanted so far was written. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async #write(): Promise<void> {
    // What is asked for in this turn is written once.
    await Promise.resolve();
    while (this.#wanted !== null) {
      const text = this.#wanted();
      this.#wanted = null;
      try {
        if (text === null) await this.#store.remove(this.#key);
        else await this.#store.save(this.#key, text);
      } catch (cause) {
        this.#onError(new TransportError('STORE', 'The checkpoint could not be kept', { cause }));
      }
    }
  }
}
