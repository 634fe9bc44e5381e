/**
 * The network between clients and gateways: one exchange is a request that travels, an answer that comes in pieces, and
 * the many ways in which the two ends come to disagree about whether it still exists.
 */
import type { GatewayRequest, ResponseSink } from '@throughline/gateway';
import { encodeText } from '@throughline/protocol';
import type { Clock } from '@throughline/log';
import type { Conditions } from './conditions.ts';
import type { SimProcess } from './sim-process.ts';
import type { Trace } from './trace.ts';

/** A gateway that accepts connections now. */
export interface Listener {
  readonly process: SimProcess;
  handle(request: GatewayRequest, sink: ResponseSink): Promise<void>;
}

export interface WireRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly server: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type WireEnd = 'ended' | 'reset' | 'refused';

/** What the client's end of an exchange is told, in this order: the head, texts, one end. */
export interface WireHandlers {
  onHead(status: number, headers: Readonly<Record<string, string>>): void;
  onText(text: string): void;
  onEnd(how: WireEnd): void;
}

/** Who learns that a connection is gone; the other finds out much later, or by its own timeout. */
export type CutSide = 'both' | 'client' | 'gateway';

export interface Exchange {
  readonly number: number;
  /** The client leaves. */
  close(): void;
  cut(side: CutSide): void;
  /** The client reads nothing until then. */
  holdUntil(atMs: number): void;
}

export interface NetworkOptions {
  readonly clock: Clock;
  readonly conditions: Conditions;
  readonly trace: Trace;
  readonly addresses: readonly string[];
  /** Who listens at an address now; `null`: nobody. */
  listener(address: string): Listener | null;
}

/** The end of a connection whose answer nobody reads. */
const NOBODY: WireHandlers = { onHead: () => undefined, onText: () => undefined, onEnd: () => undefined };

const HIGH_WATER_CHARS = 2048;
const TICK_MS = 0.001;
/** How long an end that was not told of a cut believes in the connection. */
const BELIEF_MS = 6000;

export class Network {
  readonly options: NetworkOptions;
  readonly #open = new Set<SimExchange>();
  #count = 0;

  constructor(options: NetworkOptions) {
    this.options = options;
  }

  request(address: string, request: WireRequest, handlers: WireHandlers): Exchange {
    const { conditions, addresses } = this.options;
    if (
      request.method === 'POST' &&
      conditions.duplicatePost > 0 &&
      conditions.chance.happens(conditions.duplicatePost)
    )
      this.#start(conditions.chance.pick(addresses), request, NOBODY);
    return this.#start(address, request, handlers);
  }

  #start(address: string, request: WireRequest, handlers: WireHandlers): Exchange {
    const exchange = new SimExchange(this, ++this.#count, address, request, handlers);
    this.#open.add(exchange);
    exchange.send();
    return exchange;
  }

  /** Exchanges that both ends believe in. */
  open(): readonly Exchange[] {
    return [...this.#open].filter((exchange) => exchange.isOpen());
  }

  /** @internal */ forget(exchange: SimExchange): void {
    this.#open.delete(exchange);
  }
}

class SimExchange implements Exchange {
  readonly number: number;
  readonly #network: Network;
  readonly #address: string;
  readonly #request: WireRequest;
  readonly #handlers: WireHandlers;
  readonly #gone = new AbortController();
  #listener: Listener | null = null;
  /** The client's end is over: it is told nothing more. */
  #clientDone = false;
  /** The gateway's end is over: what it writes is lost. */
  #gatewayDone = false;
  /** What the gateway writes gets nowhere, though it does not know. */
  #deaf = false;
  #headSent = false;
  #unread = 0;
  #laneAt = 0;
  #heldUntil = 0;
  #drainWaiters: (() => void)[] = [];

  constructor(network: Network, number: number, address: string, request: WireRequest, handlers: WireHandlers) {
    this.number = number;
    this.#network = network;
    this.#address = address;
    this.#request = request;
    this.#handlers = handlers;
  }

  isOpen(): boolean {
    return this.#listener !== null && !this.#clientDone && !this.#gatewayDone && !this.#deaf;
  }

  send(): void {
    const { clock, trace, listener, conditions } = this.#network.options;
    if (conditions.requestLoss > 0 && conditions.chance.happens(conditions.requestLoss)) {
      trace.add('net', `#${this.number} ${this.#request.method} gets lost`);
      return;
    }
    clock.setTimer(this.#wayMs(), () => {
      const found = listener(this.#address);
      if (found?.process.isAlive() !== true) {
        this.#tellEnd('refused');
        return;
      }
      trace.add('net', `#${this.number} ${this.#request.method} reaches ${found.process.name}`);
      this.#listener = found;
      found.process.onDeath(() => {
        if (this.#deaf) return;
        this.#gatewayDone = true;
        this.#tellEnd('reset');
      });
      // The kernel accepts for a process that is paused; the process sees it when it goes on.
      found.process.clock.setTimer(TICK_MS, () => {
        found.process.hears('request', () => {
          void found.handle(this.#gatewayRequest(), this.#sink());
        });
      });
    });
  }

  close(): void {
    if (this.#clientDone) return;
    this.#clientDone = true;
    this.#network.options.clock.setTimer(this.#wayMs(), () => {
      this.#tellGateway();
    });
    this.#network.forget(this);
  }

  cut(side: CutSide): void {
    const { clock, trace } = this.#network.options;
    trace.add('net', `#${this.number} is cut for ${side}`);
    this.#deaf = true;
    if (side !== 'gateway') this.#tellEnd('reset');
    clock.setTimer(side === 'client' ? BELIEF_MS : this.#wayMs(), () => {
      this.#tellGateway();
    });
  }

  holdUntil(atMs: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, atMs);
  }

  #wayMs(): number {
    const { conditions } = this.#network.options;
    return TICK_MS + conditions.chance.unit() * conditions.latency.networkMs;
  }

  /** Delivers to the client in the order of the calls. */
  #toClient(run: () => void): void {
    const { clock } = this.#network.options;
    const now = clock.monoMs();
    this.#laneAt = Math.max(now + this.#wayMs(), this.#laneAt + TICK_MS, this.#heldUntil);
    clock.setTimer(this.#laneAt - now, () => {
      if (!this.#clientDone) run();
    });
  }

  #tellEnd(how: WireEnd): void {
    // A reset overtakes what is on its way; an end does not.
    const { clock } = this.#network.options;
    const end = (): void => {
      if (this.#clientDone) return;
      this.#clientDone = true;
      this.#network.forget(this);
      this.#handlers.onEnd(how);
    };
    if (how === 'ended') this.#toClient(end);
    else clock.setTimer(this.#wayMs(), end);
  }

  #tellGateway(): void {
    if (this.#gatewayDone) return;
    this.#gatewayDone = true;
    this.#listener?.process.clock.setTimer(TICK_MS, () => {
      this.#gone.abort();
      for (const wake of this.#drainWaiters.splice(0)) wake();
    });
  }

  #gatewayRequest(): GatewayRequest {
    const { method, server, headers, body } = this.#request;
    const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    return { method, server, header: (name) => lower.get(name), body: encodeText(body), signal: this.#gone.signal };
  }

  #sink(): ResponseSink {
    return {
      head: (status, headers) => {
        if (this.#gatewayDone || this.#headSent) return;
        this.#headSent = true;
        if (!this.#deaf)
          this.#toClient(() => {
            this.#handlers.onHead(status, headers);
          });
      },
      write: (text) => {
        if (this.#gatewayDone) return true;
        this.#unread += text.length;
        // A piece ends anywhere, and may be the last to arrive.
        const split = this.#network.options.conditions.chance.below(text.length + 1);
        for (const piece of [text.slice(0, split), text.slice(split)]) {
          if (piece === '' || this.#deaf) continue;
          this.#toClient(() => {
            this.#handlers.onText(piece);
            this.#read(piece.length);
          });
        }
        return this.#unread < HIGH_WATER_CHARS;
      },
      drained: (signal) => {
        if (this.#gatewayDone || signal.aborted || this.#unread < HIGH_WATER_CHARS) return Promise.resolve();
        return new Promise((resolve) => {
          this.#drainWaiters.push(resolve);
          signal.addEventListener(
            'abort',
            () => {
              resolve();
            },
            { once: true },
          );
        });
      },
      end: () => {
        if (this.#gatewayDone) return;
        this.#gatewayDone = true;
        if (!this.#deaf) this.#tellEnd('ended');
      },
    };
  }

  #read(length: number): void {
    this.#unread -= length;
    if (this.#unread >= HIGH_WATER_CHARS || this.#drainWaiters.length === 0) return;
    const waiters = this.#drainWaiters.splice(0);
    this.#listener?.process.clock.setTimer(TICK_MS, () => {
      for (const wake of waiters) wake();
    });
  }
}
