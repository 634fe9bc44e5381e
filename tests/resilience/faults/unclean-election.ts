/** A leader without what was acknowledged: the tail of one partition of `events` is gone, and its offsets are used again. */
import { waitUntil } from '@throughline/testkit/processes';
import type { Fault } from './fault.ts';
import { pick } from './fault.ts';

const SETTINGS = { 'unclean.leader.election.enable': 'true', 'min.insync.replicas': '1' };
/** Records that only the leader has. */
const ALONE_MS = 4000;

export const UNCLEAN_ELECTION: Fault = {
  name: 'unclean election',
  does: 'A partition of `events` with `min.insync.replicas` 1 and unclean elections loses what its leader alone had acknowledged for 4 s: its follower is killed, then the leader, then the follower comes back and leads.',
  mayTell: ['session over', 'owner lost'],
  async run({ world, hold }) {
    const { topics, kafka } = world;
    const name = topics.nameOf('events');
    const all = await topics.places([name]);
    const { partition, leader, replicas } = pick(world, all);
    const follower = replicas.find((id) => id !== leader) ?? 0;
    await topics.configure(name, SETTINGS);
    await topics.reassign([{ topic: name, partition, replicas: [leader, follower] }]);
    await kafka.member(follower).kill();
    const isAlone = async (): Promise<boolean> => {
      const place = (await topics.places([name])).find((each) => each.partition === partition);
      return place?.isr.join() === String(leader);
    };
    await waitUntil('the leader to be alone in sync', isAlone, 30_000);
    await hold(ALONE_MS);
    await kafka.member(leader).kill();
    await kafka.member(follower).start();
    await waitUntil(
      'the follower to lead',
      async () => (await topics.places([name])).find((each) => each.partition === partition)?.leader === follower,
      60_000,
    );
    await kafka.member(leader).start();
    await topics.configure(name, { 'unclean.leader.election.enable': null, 'min.insync.replicas': '2' });
    await topics.reassign([{ topic: name, partition, replicas }]);
  },
};
