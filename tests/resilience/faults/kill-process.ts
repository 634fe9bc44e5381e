/** kill -9 of a gateway or a worker; another one takes its place. */
import type { Role } from '../world/fault-world.ts';
import type { Fault } from './fault.ts';
import { pick } from './fault.ts';
import { processesOf, startIn } from './processes.ts';

export function killProcess(role: Role): Fault {
  return {
    name: `${role} killed`,
    does: `One of two ${role}s is ended by SIGKILL; another one is started in its place.`,
    mayTell: role === 'worker' ? ['owner lost'] : [],
    isCombinable: true,
    async run({ world, over }) {
      const place = pick(world, world.places);
      await processesOf(world, role)[place]?.kill();
      over();
      await startIn(world, role, place);
    },
  };
}

/** The same of all of them at once. */
export function killAll(role: Role): Fault {
  const GONE_MS = 5000;
  return {
    name: `all ${role}s gone`,
    does: `Both ${role}s are ended by SIGKILL; 5 s later others are started.`,
    mayTell: role === 'worker' ? ['owner lost'] : [],
    async run({ world, hold, over }) {
      await Promise.all(processesOf(world, role).map((each) => each.kill()));
      await hold(GONE_MS);
      await Promise.all(world.places.map((place) => startIn(world, role, place)));
      over();
    },
  };
}
