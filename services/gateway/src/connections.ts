/**
 * The exchanges of this gateway, and among them the open SSE connections: bounded, and closed one by one when it
 * drains. SPEC: GW-DRAIN, GW-LIMIT.
 */
import type { Clock, Random } from '@throughline/log';
import { once } from './once.ts';

export interface Connection {
  /**
   * Asks the client to reconnect and ends the connection: `when-resumable` as soon as the client can come back where it
   * was (an id was sent to it), `now` in any case. Idempotent.
   */
  closeForDrain(when: 'when-resumable' | 'now'): void;
}

export interface ConnectionsOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** SSE connections at most. */
  readonly limit: number;
  onCount(count: number): void;
}

/** Part of the drain time over which the closes are spread; the rest is for clients to reconnect and to finish. */
const SPREAD = 0.8;
/** After the drain time: what was told to close writes its last bytes. */
const GRACE_MS = 1000;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Set<Connection>();
  readonly #timers = new Map<Connection, () => void>();
  #places = 0;
  #exchanges = 0;
  #onIdle: (() => void) | null = null;
  #drainUntilMs: number | null = null;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Open SSE connections. */
  count(): number {
    return this.#open.size;
  }

  /** Exchanges not yet answered to their end, open connections among them. */
  exchanges(): number {
    return this.#exchanges;
  }

  /** A place for an SSE connection, taken before the log is touched; `null` if there is none. Returns the way to give it back, idempotent. */
  reserve(): (() => void) | null {
    if (this.#places >= this.#options.limit) return null;
    this.#places++;
    return once(() => {
      this.#places--;
    });
  }

  /** An exchange begins; returns the way to say that it is over, idempotent. A drain waits for it. */
  enter(): () => void {
    this.#exchanges++;
    return once(() => {
      if (--this.#exchanges === 0) this.#onIdle?.();
    });
  }

  /** Registers an open connection; returns the way to remove it. One that opens while the gateway drains is closed in what is left of that time. */
  add(connection: Connection): () => void {
    this.#open.add(connection);
    this.#options.onCount(this.#open.size);
    if (this.#drainUntilMs !== null) this.#scheduleClose(connection, this.#drainUntilMs);
    return once(() => {
      this.#open.delete(connection);
      this.#timers.get(connection)?.();
      this.#timers.delete(connection);
      this.#options.onCount(this.#open.size);
    });
  }

  /**
   * Closes all connections, spread over `ms`; those that could not be resumed only at the end. Resolves when no exchange
   * is left, at the latest 1 s after `ms`.
   */
  async drain(ms: number): Promise<void> {
    const { clock } = this.#options;
    this.#drainUntilMs = clock.monoMs() + ms;
    for (const connection of this.#open) this.#scheduleClose(connection, this.#drainUntilMs);
    if (await this.#idle(ms)) return;
    for (const connection of [...this.#open]) connection.closeForDrain('now');
    await this.#idle(GRACE_MS);
  }

  #scheduleClose(connection: Connection, untilMs: number): void {
    const { clock, random } = this.#options;
    const leftMs = Math.max(0, untilMs - clock.monoMs());
    const cancel = clock.setTimer(random.unit() * leftMs * SPREAD, () => {
      this.#timers.delete(connection);
      connection.closeForDrain(leftMs === 0 ? 'now' : 'when-resumable');
    });
    this.#timers.set(connection, cancel);
  }

  /** Resolves `true` as soon as no exchange is left, `false` after `ms`. */
  #idle(ms: number): Promise<boolean> {
    if (this.#exchanges === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const finish = (isIdle: boolean): void => {
        cancel();
        this.#onIdle = null;
        resolve(isIdle);
      };
      const cancel = this.#options.clock.setTimer(ms, () => {
        finish(false);
      });
      this.#onIdle = () => {
        finish(true);
      };
    });
  }
}
