/** The open SSE connections of this gateway: bounded, and closed one by one when it drains. SPEC: GW-DRAIN. */
import type { Clock, Random } from '@throughline/log';

export interface Connection {
  /** Whether the client can come back where it was: an id was sent to it. */
  isResumable(): boolean;
  /** Asks the client to reconnect and ends the connection. Idempotent. */
  closeForDrain(): void;
}

export class Connections {
  readonly #limit: number;
  readonly #open = new Set<Connection>();
  readonly #empty = new Set<() => void>();
  readonly #onCount: (count: number) => void;

  constructor(limit: number, onCount: (count: number) => void) {
    this.#limit = limit;
    this.#onCount = onCount;
  }

  isFull(): boolean {
    return this.#open.size >= this.#limit;
  }

  count(): number {
    return this.#open.size;
  }

  /** Registers a connection; returns the way to remove it. */
  add(connection: Connection): () => void {
    this.#open.add(connection);
    this.#onCount(this.#open.size);
    return () => {
      if (!this.#open.delete(connection)) return;
      this.#onCount(this.#open.size);
      if (this.#open.size === 0) for (const wake of this.#empty) wake();
    };
  }

  /** Closes all connections, spread over `ms`; those that could not be resumed only at the end. Resolves when none is left or the time is over. */
  async drain(clock: Clock, random: Random, ms: number): Promise<void> {
    const cancels = [...this.#open].map((connection) =>
      clock.setTimer(random.unit() * ms * 0.8, () => {
        if (connection.isResumable()) connection.closeForDrain();
      }),
    );
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        cancel();
        this.#empty.delete(finish);
        resolve();
      };
      const cancel = clock.setTimer(ms, () => {
        for (const connection of [...this.#open]) connection.closeForDrain();
        finish();
      });
      this.#empty.add(finish);
      if (this.#open.size === 0) finish();
    });
    for (const cancel of cancels) cancel();
  }
}
