/** Where the place of a client is kept. SPEC: CLIENT-STORE. */

/**
 * Keeps one text a key. The text holds the session id, which opens the session to whoever has it: keep it as a secret.
 * `save` replaces the text as a whole or leaves it as it was; saves of one key come one after the other.
 */
export interface CheckpointStore {
  /** `undefined`: nothing is kept. */
  load(key: string): Promise<string | undefined>;
  save(key: string, text: string): Promise<void>;
  /** Nothing kept is no error. */
  remove(key: string): Promise<void>;
}

/** Keeps the place as long as the object lives: a new transport in the same process goes on where the old one stopped. */
export class MemoryCheckpointStore implements CheckpointStore {
  readonly #texts = new Map<string, string>();

  async load(key: string): Promise<string | undefined> {
    return this.#texts.get(key);
  }

  async save(key: string, text: string): Promise<void> {
    this.#texts.set(key, text);
  }

  async remove(key: string): Promise<void> {
    this.#texts.delete(key);
  }
}
