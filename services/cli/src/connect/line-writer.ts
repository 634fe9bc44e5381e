/** Lines to a stream whose reader may be slow or gone. SPEC: CONNECT-STDOUT, CONNECT-BOUNDED. */
import type { Writable } from 'node:stream';

export class LineWriter {
  readonly #output: Writable;
  readonly #lost = Promise.withResolvers<Error>();
  #isLost = false;

  constructor(output: Writable) {
    this.#output = output;
    output.on('error', (error: Error) => {
      this.#lose(error);
    });
    output.on('close', () => {
      this.#lose(new Error('it was closed'));
    });
  }

  /** Resolves with the reason when nobody reads any more. */
  get lost(): Promise<Error> {
    return this.#lost.promise;
  }

  /**
   * Resolves when the system has taken the line, which it does not while its reader is too slow; at once when nobody
   * reads any more. One line is whole, whoever else writes.
   */
  async write(text: string): Promise<void> {
    if (this.#isLost) return;
    const written = new Promise<void>((resolve) => {
      this.#output.write(`${text}\n`, () => {
        resolve();
      });
    });
    await Promise.race([written, this.#lost.promise]);
  }

  #lose(error: Error): void {
    this.#isLost = true;
    this.#lost.resolve(error);
  }
}
