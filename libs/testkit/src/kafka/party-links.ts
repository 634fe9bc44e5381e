/** Ways to brokers that a party has for itself, so that it alone can be cut off: a listener at each broker, behind a proxy. */
import { startFaultLink } from '../fault-link.ts';
import type { FaultLink } from '../fault-link.ts';
import { findFreePort, LOOPBACK } from '../free-port.ts';

export interface PartyLinks {
  /** Of all brokers, as this party reaches them; what they tell it of each other are these too. */
  readonly addresses: readonly string[];
  /** Throws on an id that is not a broker's. */
  to(broker: number): FaultLink;
  readonly all: readonly FaultLink[];
}

/** A listener of one broker for one party. */
export interface PartyListener {
  readonly party: string;
  /** Name in the properties. */
  readonly name: string;
  /** Where the broker is reached on this host, by the proxy only. */
  readonly port: number;
  /** `host:port` that the broker tells the party. */
  readonly advertised: string;
}

export interface Parties {
  readonly links: ReadonlyMap<string, PartyLinks>;
  listenersOf(broker: number): readonly PartyListener[];
  stop(): Promise<void>;
}

/** `name` of a party: letters and digits. */
export async function startParties(names: readonly string[], brokers: readonly number[]): Promise<Parties> {
  const links = new Map<string, PartyLinks>();
  const listeners = new Map<number, PartyListener[]>(brokers.map((id) => [id, []]));
  const all: FaultLink[] = [];
  for (const party of names) {
    const own = new Map<number, FaultLink>();
    for (const id of brokers) {
      const port = await findFreePort();
      const proxy = await startFaultLink({ target: () => ({ host: LOOPBACK, port }) });
      all.push(proxy);
      own.set(id, proxy);
      const advertised = `${LOOPBACK}:${proxy.port}`;
      listeners.get(id)?.push({ party, name: `PARTY${party.toUpperCase()}`, port, advertised });
    }
    links.set(party, {
      addresses: [...own.values()].map(({ port }) => `${LOOPBACK}:${port}`),
      all: [...own.values()],
      to(id) {
        const found = own.get(id);
        if (found === undefined) throw new RangeError(`no broker ${id}`);
        return found;
      },
    });
  }
  return {
    links,
    listenersOf: (id) => listeners.get(id) ?? [],
    async stop() {
      await Promise.all(all.map((proxy) => proxy.stop()));
    },
  };
}

export function findParty(parties: Parties, name: string): PartyLinks {
  const found = parties.links.get(name);
  if (found === undefined) throw new RangeError(`no party ${name}; there are ${[...parties.links.keys()].join(', ')}`);
  return found;
}
