/**
 * Two gateways and two workers on one log file, behind one address. A tool that takes longer than any of them lives is
 * called; then each of them is stopped in order and replaced, one after the other, as a deployment does it. Exit code 0:
 * the call was answered, each step of its progress came once, and no other call was lost meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/client';
import { ResumableTransport } from '@throughline/client';
import { startBalancer, startCluster } from '@throughline/testkit/processes';
import { textOf } from '../human/person.ts';
import { serveModule } from '../story/serve-module.ts';
import { say, tellStory } from '../story/tell-story.ts';
import { beginIndexing, INDEX_SERVER } from './index-call.ts';

const PAGES_EACH = 8;
/** Between the short calls. */
const LOOK_MS = 50;

say('Starting two gateways and two workers on one log file, behind one address without stickiness …');
await using cluster = await startCluster({
  ...serveModule('index', INDEX_SERVER),
  gatewayArgs: ['--retry', '200ms', '--drain', '500ms'],
  // Shorter than the call: whoever runs it is gone before it ends.
  workerArgs: ['--drain', '500ms'],
});
await using balancer = await startBalancer(() => cluster.gateways);

/** Short calls, one after the other, until told to stop. Gives how many were answered. */
async function look(client: Client, until: AbortSignal): Promise<number> {
  let answered = 0;
  while (!until.aborted) {
    const text = textOf(await client.callTool({ name: 'look', arguments: {} }, { timeout: 60_000 }));
    if (text !== 'here') throw new Error(`a short call was answered: ${text}`);
    answered += 1;
    await pause(LOOK_MS);
  }
  return answered;
}

/** A planned stop, and another process in its place. Says whether it left in order. */
async function replace(role: 'gateway' | 'worker', place: 0 | 1): Promise<boolean> {
  const former = (role === 'gateway' ? cluster.gateways : cluster.workers)[place];
  if (former === undefined) return false;
  const startedAt = performance.now();
  const { code } = await former.stop();
  const stopMs = (performance.now() - startedAt).toFixed(0);
  const next = await (role === 'gateway' ? cluster.startGateway(place) : cluster.startWorker(place));
  say(`   ${role} ${former.pid} drained for ${stopMs} ms and left with exit code ${code}; ${next.pid} is in its place`);
  return code === 0;
}

const PARTS = [
  ['gateway', 0],
  ['gateway', 1],
  ['worker', 0],
  ['worker', 1],
] as const;

await tellStory(
  {
    kept: 'Everything was replaced under a running call, and its client saw one answer and each step once.',
    broken: 'The deployment was seen by a client.',
  },
  async (claim) => {
    const sessions = new Set<string | undefined>();
    const transport = new ResumableTransport(balancer.url, { onSessionLost: () => sessions.add('lost') });
    const client = new Client({ name: 'deploy', version: '1.0.0' });
    await using ends = new AsyncDisposableStack();
    ends.defer(() => client.close());
    await client.connect(transport);
    sessions.add(transport.sessionId);
    say('\n1. A client calls a tool that indexes pages as they come in, and goes on with short calls beside it');
    const call = beginIndexing(client, cluster.folder, { phases: PARTS.length + 1, pagesEach: PAGES_EACH });
    const stop = new AbortController();
    const looking = look(client, stop.signal);
    looking.catch(() => undefined);

    say('\n2. A deployment: SIGTERM, drain, a new process, one after the other');
    let inOrder = true;
    for (const [role, place] of PARTS) {
      await call.nextPages();
      inOrder = (await replace(role, place)) && inOrder;
      say(`   the client has ${call.steps.length} of ${call.expected.length} steps`);
    }

    say('\n3. The rest of the pages');
    await call.nextPages();
    const text = await call.finish();
    stop.abort();
    const answered = await looking;
    sessions.add(transport.sessionId);
    say(`   the call is answered: ${text}`);
    say('');
    claim(
      'each process left with exit code 0, and another took its place',
      inOrder && cluster.urls().length === cluster.gateways.length,
    );
    claim(
      `each of ${call.expected.length} steps of progress came once, in order`,
      JSON.stringify(call.steps) === JSON.stringify(call.expected),
    );
    claim(`${call.processes().length} workers ran the call, one after the other`, call.processes().length >= 2);
    claim(`${answered} short calls beside it were answered, none was lost`, answered > 0);
    claim('the session is the one that the client began with', sessions.size === 1);
  },
);
