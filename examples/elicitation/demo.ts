/**
 * Two gateways and a worker on one log file, behind one address. A tool asks a person, and the gateway that streams the
 * call is killed with SIGKILL while the form is open. The answer goes over the other gateway. Exit code 0: the person
 * was asked once, and the call finished.
 */
import { startBalancer, startCluster, waitUntil } from '@throughline/testkit/processes';
import { beginBooking, BOOKING_SERVER, finishBooking } from '../human/booking.ts';
import { connectPerson } from '../human/person.ts';
import { serveModule } from '../story/serve-module.ts';
import { say, tellStory } from '../story/tell-story.ts';

say('Starting two gateways and a worker on one log file, behind one address …');
await using cluster = await startCluster({
  ...serveModule('booking', BOOKING_SERVER),
  workers: 1,
  gatewayArgs: ['--retry', '200ms'],
});
const [first, second] = cluster.gateways;
if (first === undefined || second === undefined) throw new Error('two gateways are needed');
// What begins goes to the first one, so that it is known which one to kill.
await using balancer = await startBalancer(() => (first.isRunning() ? [first] : [second]));

await tellStory(
  {
    kept: 'The gateway was killed while a form was open; the person was asked once, and the call finished.',
    broken: 'The person was asked twice, or the call did not finish.',
  },
  async (claim) => {
    await using person = await connectPerson(balancer.url);
    say(`\n1. An official MCP client calls the tool "book"; gateway A (pid ${first.pid}) streams to it`);
    const booking = await beginBooking(person, cluster.folder);

    say(`\n2. kill -9 ${first.pid}, while the form is open`);
    await first.kill();
    const killedAt = performance.now();
    await waitUntil('the client to come back', () => (balancer.served.get(second.url) ?? 0) > 0, 30_000);
    say(`   ${(performance.now() - killedAt).toFixed(0)} ms later the client resumes on gateway B (pid ${second.pid})`);

    say('\n3. The person answers over gateway B');
    await finishBooking(person, booking, claim);
    claim('the tool ran once: it never noticed', booking.runs() === 1);
  },
);
