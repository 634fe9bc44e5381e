/** Work that goes on one after the other. */
import type { Clock } from '@throughline/log';

export class Turns {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs `work` when all that was asked for before is over, and settles as it does.
   * @param lingers the next one begins only after whoever waits for `work` has gone on to its own next pause.
   */
  take<T>(work: () => Promise<T>, lingers = false): Promise<T> {
    const done = this.#last.then(work);
    const over = done.then(
      () => (lingers ? this.#pause() : undefined),
      () => undefined,
    );
    this.#last = over;
    return done;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(0, resolve);
    });
  }
}
