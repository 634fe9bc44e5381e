/** Brokers that are killed, stand still, are cut off from each other, or all gone. */
import type { KafkaBroker } from '@throughline/testkit/kafka';
import { waitUntil } from '@throughline/testkit/processes';
import type { FaultWorld } from '../world/fault-world.ts';
import type { Fault } from './fault.ts';
import { pick } from './fault.ts';

const PAUSE_MS = 15_000;
export const OUTAGE_MS = 20_000;
const CUT_MS = 15_000;
/** From a full disk to the end of its broker. */
const DISK_MS = 60_000;

const onAll = (world: FaultWorld, what: (broker: KafkaBroker) => Promise<void>): Promise<unknown> =>
  Promise.all(world.kafka.members.map(what));

export const BROKER_KILLED: Fault = {
  name: 'broker killed',
  does: 'A broker is ended by SIGKILL; it is started again 8 s later.',
  mayTell: [],
  isCombinable: true,
  async run({ world, over, hold }) {
    const coordinator = await world.topics.coordinator();
    await pick(
      world,
      world.kafka.members.filter(({ id }) => id !== coordinator),
    ).kill();
    over();
    await hold(8000);
  },
};

export const COORDINATOR_KILLED: Fault = {
  name: 'coordinator killed',
  does: 'The broker that keeps the group of the workers is ended by SIGKILL; it is started again 8 s later.',
  mayTell: [],
  async run({ world, over, hold }) {
    await world.kafka.member(await world.topics.coordinator()).kill();
    over();
    await hold(8000);
  },
};

export const BROKER_PAUSED: Fault = {
  name: 'broker paused',
  does: 'The broker that keeps the group of the workers stands still for 15 s with its sockets open.',
  mayTell: ['owner lost'],
  async run({ world, hold }) {
    const victim = world.kafka.member(await world.topics.coordinator());
    await victim.pause();
    try {
      await hold(PAUSE_MS);
    } finally {
      await victim.resume();
    }
  },
};

export const BROKERS_CUT: Fault = {
  name: 'brokers cut',
  does: 'For 15 s a broker and the others do not reach each other; clients still reach it. In containers their network is cut, between processes what others fetch from it.',
  mayTell: ['owner lost'],
  isCombinable: true,
  async run({ world, hold }) {
    const { kafka } = world;
    const { id } = pick(world, kafka.members);
    if (kafka.network === null) kafka.party('brokers').to(id).swallow('both');
    else await kafka.network.disconnect(id);
    try {
      await hold(CUT_MS);
    } finally {
      if (kafka.network === null) await kafka.party('brokers').to(id).heal();
      else await kafka.network.connect(id);
    }
  },
};

export const ALL_BROKERS_GONE: Fault = {
  name: 'all brokers gone',
  does: 'All brokers are ended by SIGKILL; 20 s later they are started again.',
  mayTell: ['owner lost'],
  async run({ world, hold }) {
    await onAll(world, (member) => member.kill());
    await hold(OUTAGE_MS);
    await onAll(world, (member) => member.start());
  },
};

export const CLUSTER_RESTARTED: Fault = {
  name: 'cluster restarted',
  does: 'All brokers are stopped in order and started again.',
  mayTell: ['owner lost'],
  async run({ world }) {
    await onAll(world, (member) => member.stop());
    await onAll(world, (member) => member.start());
  },
};

export const DISK_FULL: Fault = {
  name: 'disk full',
  does: 'The disk of a broker is filled to its last byte; the broker ends by that, and is started again when there is room, 5 s later.',
  mayTell: [],
  whyNot: ({ kafka }) => (kafka.smallDisk === null ? 'no small disk can be mounted: root on Linux may' : null),
  async run({ world, hold }) {
    const { smallDisk, members } = world.kafka;
    const broker = members.at(-1);
    smallDisk?.fill();
    try {
      await waitUntil('the broker to end', async () => (await broker?.isRunning()) === false, DISK_MS);
      await hold(5000);
    } finally {
      smallDisk?.free();
    }
    await broker?.start();
  },
};
