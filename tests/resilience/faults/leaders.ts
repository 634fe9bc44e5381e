/** Leaders of partitions, and the coordinator of the group, that move to other brokers while all of them live. */
import type { FaultWorld } from '../world/fault-world.ts';
import type { Fault } from './fault.ts';

/** Each partition's next replica becomes the preferred one, and the leader. */
async function moveLeaders(world: FaultWorld, topics: readonly string[]): Promise<void> {
  const places = await world.topics.places(topics);
  await world.topics.reassign(
    places.map(({ topic, partition, replicas, leader }) => {
      const at = replicas.indexOf(leader) + 1;
      return { topic, partition, replicas: [...replicas.slice(at), ...replicas.slice(0, at)] };
    }),
  );
  await world.topics.electPreferred();
}

export const LEADERS_MOVED: Fault = {
  name: 'leaders moved',
  does: 'Each partition of the product gets another leader, by a preferred election.',
  mayTell: [],
  isCombinable: true,
  run: ({ world }) =>
    moveLeaders(
      world,
      ['inbound', 'events', 'sessions', 'meta'].map((topic) => world.topics.nameOf(topic)),
    ),
};

export const COORDINATOR_MOVED: Fault = {
  name: 'coordinator moved',
  does: 'The group of the workers gets another coordinator: `__consumer_offsets` gets other leaders.',
  mayTell: ['owner lost'],
  isCombinable: true,
  run: ({ world }) => moveLeaders(world, ['__consumer_offsets']),
};
