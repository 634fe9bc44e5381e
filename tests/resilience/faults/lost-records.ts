/** Records that are no longer there: evicted below live cursors, or gone with their topics. */
import { waitUntil } from '@throughline/testkit/processes';
import type { Fault } from './fault.ts';
import { processesOf, startIn } from './processes.ts';

export const RETENTION: Fault = {
  name: 'retention below live cursors',
  does: 'Both gateways are ended by SIGKILL, all records of `events` are removed (`kafka-delete-records`), and others are started: every cursor that clients hold is evicted.',
  mayTell: ['session over', 'owner lost'],
  async run({ world, over }) {
    await Promise.all(processesOf(world, 'gateway').map((each) => each.kill()));
    await world.topics.deleteRecords(world.topics.nameOf('events'));
    await Promise.all(world.places.map((place) => startIn(world, 'gateway', place)));
    over();
  },
};

export const TOPICS_RECREATED: Fault = {
  name: 'topics re-created',
  does: '`inbound` and `events` are deleted and made anew under running processes.',
  mayTell: ['session over', 'owner lost'],
  async run({ world }) {
    await world.topics.deleteTopics([world.topics.nameOf('inbound'), world.topics.nameOf('events')]);
    await waitUntil(
      'the topics to be there again',
      async () => {
        try {
          await world.applyTopics();
          return true;
        } catch {
          return false;
        }
      },
      30_000,
    );
  },
};

export const PARTITIONS_ADDED: Fault = {
  name: 'partitions added',
  does: 'Each topic of the product gets one more partition under living sessions.',
  mayTell: ['owner lost'],
  async run({ world }) {
    const count = (await world.topics.places([world.topics.nameOf('events')])).length;
    await world.applyTopics(count + 1);
  },
};
