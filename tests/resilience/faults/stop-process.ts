/** SIGSTOP of an owner past its session, and SIGCONT when others have taken over; the same of a gateway. */
import { LEASE_MS } from '../world/fault-world.ts';
import type { Role } from '../world/fault-world.ts';
import type { Fault } from './fault.ts';
import { pick } from './fault.ts';
import { processesOf } from './processes.ts';

/** Lease, takeover, and then some. */
const STOPPED_MS = LEASE_MS + 7000;

export function stopProcess(role: Role): Fault {
  return {
    name: `${role} stopped`,
    does:
      role === 'worker'
        ? `A worker stands still (SIGSTOP) for ${STOPPED_MS / 1000} s, until its partitions have other owners, and goes on (SIGCONT) as if it still owned them.`
        : `A gateway stands still (SIGSTOP) for ${STOPPED_MS / 1000} s with all its connections open, and goes on (SIGCONT).`,
    mayTell: role === 'worker' ? ['owner lost'] : [],
    isCombinable: true,
    async run({ world, hold }) {
      const stopped = processesOf(world, role)[pick(world, world.places)];
      stopped?.pause();
      try {
        await hold(STOPPED_MS);
      } finally {
        stopped?.resume();
      }
    },
  };
}
