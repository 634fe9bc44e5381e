/**
 * Two gateways and a worker on one log file, behind one address. An official stdio client starts `throughline connect`
 * as its server. In the middle of a call one gateway is replaced in order, and the other is killed with SIGKILL. Exit
 * code 0: the client noticed nothing.
 */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startBalancer, startCluster, throughlineCommand } from '@throughline/testkit/processes';
import { beginIndexing, INDEX_SERVER } from '../rolling-deploy/index-call.ts';
import { serveModule } from '../story/serve-module.ts';
import { say, tellStory } from '../story/tell-story.ts';

say('Starting two gateways and a worker on one log file, behind one address …');
await using cluster = await startCluster({
  ...serveModule('index', INDEX_SERVER),
  workers: 1,
  gatewayArgs: ['--retry', '200ms', '--drain', '500ms'],
});
await using balancer = await startBalancer(() => cluster.gateways);

await tellStory(
  {
    kept: 'The gateways were replaced in the middle of a call, and the stdio client noticed nothing.',
    broken: 'The stdio client noticed that gateways were replaced.',
  },
  async (claim) => {
    const noticed: string[] = [];
    const client = new Client({ name: 'stdio', version: '1.0.0' });
    client.onerror = (error) => noticed.push(error.message);
    client.onclose = () => noticed.push('the server has ended');
    client.setNotificationHandler(
      'notifications/tools/list_changed',
      () => void noticed.push('the tools have changed'),
    );
    const command = throughlineCommand('connect', balancer.url, '--state-folder', `${cluster.folder}/places`);
    const transport = new StdioClientTransport({ ...command, cwd: cluster.folder, stderr: 'inherit' });
    await using ends = new AsyncDisposableStack();
    ends.defer(() => client.close());
    await client.connect(transport, { timeout: 60_000 });
    const bridge = transport.pid;
    say(`\n1. An official stdio client has started "throughline connect" (pid ${bridge ?? ''}) and calls a tool`);
    const call = beginIndexing(client, cluster.folder, { phases: 3, pagesEach: 8 });

    const [first, second] = cluster.gateways;
    if (first === undefined || second === undefined) throw new Error('two gateways are needed');
    await call.nextPages();
    say(`\n2. Gateway A (pid ${first.pid}) is replaced in order`);
    await first.stop();
    const next = await cluster.startGateway(0);
    say(`   pid ${next.pid} is in its place; the client has ${call.steps.length} of ${call.expected.length} steps`);

    await call.nextPages();
    say(`\n3. kill -9 ${second.pid}: gateway B`);
    await second.kill();
    await cluster.startGateway(1);
    await call.nextPages();
    const text = await call.finish();
    say(`\n4. The call is answered: ${text}`);
    say('');
    claim(
      `each of ${call.expected.length} steps of progress came once, in order`,
      JSON.stringify(call.steps) === JSON.stringify(call.expected),
    );
    claim('the process that the client started is the same', transport.pid === bridge && bridge !== null);
    claim(`the client noticed nothing ${noticed.join('; ')}`.trimEnd(), noticed.length === 0);
  },
);
