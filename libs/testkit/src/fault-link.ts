/**
 * A TCP link between two parties of a test that heals, and what a bad network does to them until then: bytes that vanish
 * in one direction or both while the sockets stay open, bytes that come late, connections that are refused or reset, and
 * silence after a number of messages.
 */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { LOOPBACK } from './free-port.ts';
import { createMessageGate } from './message-gate.ts';
import type { MessageGate } from './message-gate.ts';

/** Whose bytes do not arrive: those to the server, those to the client, or all. */
export type CutDirection = 'to-server' | 'to-client' | 'both';

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
}

export interface FaultLink {
  /** On 127.0.0.1; kept for as long as the proxy lives. */
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: number;
  /**
   * From now on bytes in this direction vanish, on connections that are open and on new ones; neither side hears that
   * the other one closes. `heal` resets the connections that have lost bytes.
   */
  swallow(direction: CutDirection): void;
  /** The same, but what the systems can buffer waits, and arrives after `heal`: late, whole and in order. */
  hold(direction: CutDirection): void;
  /**
   * Counts length-framed messages of both directions from here on, and swallows both after so many, until it is called
   * again; `null`: no more.
   */
  stopAfter(messages: number | null): void;
  /** Messages that passed since {@link stopAfter} was called. */
  readonly messages: number;
  /** Nothing listens any more; connections that are open go on. */
  refuse(): Promise<void>;
  /** Resets every connection that is open, once. */
  reset(): void;
  /** Ends `swallow`, `hold` and `refuse`, and silence after a number of messages. */
  heal(): Promise<void>;
  /** Resets what is open and listens no more. Idempotent. */
  stop(): Promise<void>;
}

export interface FaultLinkOptions {
  /** Asked at each connection, so that a server may come back elsewhere. */
  target(): TcpTarget;
  /** Default: any free one. */
  readonly port?: number;
  /** More than these at once are reset. Default 2,000. */
  readonly maxConnections?: number;
}

type Fate = 'pass' | 'swallow' | 'hold';
type Way = Exclude<CutDirection, 'both'>;
type FateOf = (way: Way) => Fate;

/** Two sockets, and what becomes of the bytes from each to the other. */
class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #fateOf: FateOf;
  readonly #gate: MessageGate;
  #isTorn = false;

  constructor(client: Socket, server: Socket, fateOf: FateOf, gate: MessageGate, onClosed: () => void) {
    this.#client = client;
    this.#server = server;
    this.#fateOf = fateOf;
    this.#gate = gate;
    this.#join(client, server, 'to-server', onClosed);
    this.#join(server, client, 'to-client', onClosed);
  }

  reset(): void {
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
  }

  /** After the fates have changed. */
  apply(): void {
    const isCut = this.#fateOf('to-server') !== 'pass' || this.#fateOf('to-client') !== 'pass';
    if (!isCut && (this.#isTorn || this.#client.destroyed || this.#server.destroyed)) {
      this.reset();
      return;
    }
    this.#flow(this.#client, this.#server, 'to-server');
    this.#flow(this.#server, this.#client, 'to-client');
  }

  #flow(from: Socket, to: Socket, direction: Way): void {
    const fate = this.#fateOf(direction);
    if (fate === 'hold') from.pause();
    else if (fate === 'swallow' || !to.writableNeedDrain) from.resume();
  }

  #join(from: Socket, to: Socket, direction: Way, onClosed: () => void): void {
    from.setNoDelay(true);
    const pass = this.#gate.way();
    const isOpen = (): boolean => this.#fateOf(direction) === 'pass' && !this.#gate.isShut();
    from.on('data', (bytes: Buffer) => {
      const fate = this.#fateOf(direction);
      const passing = fate === 'swallow' ? bytes.subarray(0, 0) : pass(bytes);
      if (passing.length < bytes.length) this.#isTorn = true;
      // What was read before the hold began is on its way already.
      if (passing.length > 0 && !to.destroyed && !to.write(passing) && fate === 'pass') from.pause();
    });
    to.on('drain', () => {
      if (this.#fateOf(direction) !== 'hold') from.resume();
    });
    from.on('end', () => {
      if (isOpen()) to.end();
      else this.#isTorn = true;
    });
    from.on('error', () => undefined);
    from.on('close', () => {
      if (isOpen()) to.destroy();
      else this.#isTorn = true;
      if (this.#client.destroyed && this.#server.destroyed) onClosed();
    });
  }
}

export async function startFaultLink(options: FaultLinkOptions): Promise<FaultLink> {
  const { target, maxConnections = 2000 } = options;
  const pairs = new Set<Pair>();
  const gate = createMessageGate();
  const fates: Record<Way, Fate> = { 'to-server': 'pass', 'to-client': 'pass' };
  const cut = (direction: CutDirection, fate: Fate): void => {
    for (const each of ['to-server', 'to-client'] as const)
      if (direction === 'both' || direction === each) fates[each] = fate;
    for (const pair of pairs) pair.apply();
  };
  const accept = (client: Socket): void => {
    if (pairs.size >= maxConnections) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ ...target(), allowHalfOpen: true });
    const pair: Pair = new Pair(
      client,
      server,
      (direction) => fates[direction],
      gate,
      () => pairs.delete(pair),
    );
    pairs.add(pair);
    pair.apply();
  };
  let server: Server | null = await listen(accept, options.port ?? 0);
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closing = server;
    server = null;
    if (closing === null) return;
    // Its callback waits for the connections, which live on.
    closing.close();
    await Promise.resolve();
  };
  let isStopped = false;
  const reset = (): void => {
    for (const pair of [...pairs]) pair.reset();
  };
  return {
    port,
    get connections() {
      return pairs.size;
    },
    swallow(direction) {
      cut(direction, 'swallow');
    },
    hold(direction) {
      cut(direction, 'hold');
    },
    stopAfter(messages) {
      gate.stopAfter(messages);
    },
    get messages() {
      return gate.passed();
    },
    refuse: close,
    reset,
    async heal() {
      gate.stopAfter(null);
      cut('both', 'pass');
      if (server === null && !isStopped) server = await listen(accept, port);
    },
    async stop() {
      isStopped = true;
      await close();
      reset();
      pairs.clear();
    },
  };
}

function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, accept);
    server.once('error', reject);
    server.listen(port, LOOPBACK, () => {
      resolve(server);
    });
  });
}
