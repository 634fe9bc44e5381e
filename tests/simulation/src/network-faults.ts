/** Faults of the network between clients and gateways. */
import { strikeHalf } from './fault-scene.ts';
import type { FaultRow } from './fault-scene.ts';

export const NETWORK_FAULTS = {
  'connection-cut': {
    what: 'connections are cut, and both ends know',
    harm: 'none',
    strike({ network, chance }) {
      const cut = network.open().filter(() => chance.happens(0.5));
      for (const exchange of cut) exchange.cut('both');
      return cut.length === 0 ? null : `cut ${cut.length} connections`;
    },
  },
  'half-open': {
    what: 'connections are cut, and one end goes on to believe in them',
    harm: 'none',
    strike({ network, chance }) {
      const cut = network.open().filter(() => chance.happens(0.3));
      for (const exchange of cut) exchange.cut(chance.happens(0.5) ? 'client' : 'gateway');
      return cut.length === 0 ? null : `cut ${cut.length} connections on one side`;
    },
  },
  'duplicate-post': {
    what: 'a proxy repeats POSTs through another gateway',
    harm: 'none',
    strike: strikeHalf('duplicatePost', [100, 1500], 'POSTs are repeated'),
  },
  'request-lost': {
    what: 'requests get lost on their way, and only time tells their clients',
    harm: 'none',
    strike: strikeHalf('requestLoss', [100, 1500], 'requests get lost'),
  },
} as const satisfies Record<string, FaultRow>;
