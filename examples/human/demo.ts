/**
 * A gateway and two workers on one log file. A tool asks a person, and the worker that runs it is killed with SIGKILL
 * while the form is open. Another worker runs the tool again with memory. Exit code 0: the person was asked once, and
 * the call finished.
 */
import { parseSessionId } from '@throughline/protocol';
import { startCluster, waitUntil } from '@throughline/testkit/processes';
import { serveModule } from '../story/serve-module.ts';
import { say, tellStory } from '../story/tell-story.ts';
import { beginBooking, BOOKING_SERVER, finishBooking } from './booking.ts';
import { connectPerson } from './person.ts';

say('Starting a gateway and two workers on one log file …');
await using cluster = await startCluster({
  ...serveModule('booking', BOOKING_SERVER),
  gateways: 1,
  args: ['--config', 'throughline.yaml', '--dead-after', '2500ms'],
  workerArgs: ['--heartbeat', '250ms'],
});

await tellStory(
  {
    kept: 'The worker was killed while a form was open; the person was asked once, and the call finished.',
    broken: 'The person was asked twice, or the call did not finish.',
  },
  async (claim) => {
    await using person = await connectPerson(`${cluster.urls()[0] ?? ''}/booking`);
    const worker = cluster.ownerOf(parseSessionId(person.sessionId)?.id.partition ?? -1);
    if (worker === null) throw new Error('nobody owns the partition of the session');

    say(`\n1. An official MCP client calls the tool "book", which runs on the worker with pid ${worker.pid}`);
    const booking = await beginBooking(person, cluster.folder);

    say(`\n2. kill -9 ${worker.pid}, while the form is open`);
    await worker.kill();
    const killedAt = performance.now();
    await waitUntil('the second run of the tool', () => booking.runs() === 2, 30_000);
    say(`   ${(performance.now() - killedAt).toFixed(0)} ms later the other worker runs the tool again, with memory:`);
    say('   "Ada" is fed back, nothing is asked again, and the form of the person is still open');

    say('\n3. The person answers the form that the dead worker had opened');
    await finishBooking(person, booking, claim);
    claim('the tool ran twice, on two workers', booking.runs() === 2);
  },
);
