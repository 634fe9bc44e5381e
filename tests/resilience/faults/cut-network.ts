/** The network between two parties: cut one way or both ways, refused, reset. */
import type { CutDirection, FaultLink } from '@throughline/testkit';
import type { FaultWorld } from '../world/fault-world.ts';
import type { Fault, Told } from './fault.ts';
import { pick } from './fault.ts';

export type Between = 'clients and gateway' | 'gateway and brokers' | 'worker and brokers';

/** Past the lease of a worker and its heartbeats. */
const CUT_MS = 15_000;

/** Links of one process, to all brokers or, by chance, to one. */
function choose(world: FaultWorld, between: Between): readonly FaultLink[] {
  const place = pick(world, world.places);
  if (between === 'clients and gateway') return [world.front(place)];
  const links = world.links(between === 'gateway and brokers' ? 'gateway' : 'worker', place);
  const one = pick(world, links.all);
  return world.random.below(3) === 0 ? [one] : links.all;
}

const mayTell = (between: Between): readonly Told[] => (between === 'worker and brokers' ? ['owner lost'] : []);

const WAYS: Readonly<Record<CutDirection, readonly [name: string, does: string]>> = {
  'to-server': ['towards', 'what the first says to the other'],
  'to-client': ['back', 'what the other says to the first'],
  both: ['both ways', 'what either says'],
};

export function cutNetwork(between: Between, direction: CutDirection): Fault {
  const [name, does] = WAYS[direction];
  return {
    name: `${between} cut ${name}`,
    does: `For ${CUT_MS / 1000} s ${does} does not arrive, between ${between}; the sockets stay open. By chance it is lost or comes late, and one broker or all are concerned.`,
    mayTell: mayTell(between),
    isCombinable: true,
    async run({ world, hold }) {
      const links = choose(world, between);
      const isLate = world.random.below(2) === 0;
      for (const link of links) {
        if (isLate) link.hold(direction);
        else link.swallow(direction);
      }
      try {
        await hold(CUT_MS);
      } finally {
        await Promise.all(links.map((link) => link.heal()));
      }
    },
  };
}

export function refuseNetwork(between: Between): Fault {
  return {
    name: `${between} reset and refused`,
    does: `All connections between ${between} are reset, and new ones refused for 5 s.`,
    mayTell: mayTell(between),
    isCombinable: true,
    async run({ world, hold }) {
      const links = choose(world, between);
      await Promise.all(links.map((link) => link.refuse()));
      for (const link of links) link.reset();
      try {
        await hold(5000);
      } finally {
        await Promise.all(links.map((link) => link.heal()));
      }
    },
  };
}
