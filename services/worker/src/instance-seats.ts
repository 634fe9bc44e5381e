/** Bounds the server instances of a worker: for each server and for each principal. SPEC: WRK-SEATS. */

export interface SeatLimits {
  /** Instances of one server. */
  server(name: string): number;
  /** Instances of one principal, over all servers. */
  readonly principal: number;
}

export class InstanceSeats {
  readonly #limits: SeatLimits;
  readonly #byServer = new Map<string, number>();
  readonly #byPrincipal = new Map<string, number>();
  #count = 0;

  readonly #onChange: () => void;

  constructor(limits: SeatLimits, onChange: () => void = () => undefined) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  count(): number {
    return this.#count;
  }

  isFull(server: string): boolean {
    return (this.#byServer.get(server) ?? 0) >= this.#limits.server(server);
  }

  /** `false`: the server or the principal has as many instances as it may. Every `true` is followed by one {@link free}. */
  take(server: string, principal: string): boolean {
    if (this.isFull(server) || (this.#byPrincipal.get(principal) ?? 0) >= this.#limits.principal) return false;
    this.#add(server, principal, 1);
    return true;
  }

  free(server: string, principal: string): void {
    this.#add(server, principal, -1);
  }

  #add(server: string, principal: string, by: 1 | -1): void {
    this.#count += by;
    change(this.#byServer, server, by);
    change(this.#byPrincipal, principal, by);
    this.#onChange();
  }
}

function change(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
