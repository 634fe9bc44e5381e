/** What an idle SSE connection holds in memory. */
import { Agent } from 'node:http';
import { COLLECTING } from '@throughline/testkit/processes';
import { openBareStream } from '../lib/bare-stream.ts';
import { Caller, eachOf, openSessions } from '../lib/caller.ts';
import { heldBytes } from '../lib/process-usage.ts';
import { startProduct } from '../lib/product.ts';
import { ratioRow } from '../lib/result.ts';
import type { BenchCase } from '../lib/result.ts';
import { startPeer } from '../lib/start-peer.ts';

const CONNECTIONS = 5000;
const SETUP_WIDTH = 32;

export const idleMemory: BenchCase = {
  name: 'memory of an idle connection',
  async run() {
    const ours = await measureGateway();
    const bare = await measureExpress();
    return {
      name: this.name,
      setup: `${CONNECTIONS} standalone streams of as many sessions on a gateway in a process of its own, against as many bare SSE answers of Express: growth of resident memory from before the streams were opened, each time when garbage was collected; both had answered as many requests before`,
      rows: [ratioRow('resident memory a connection', ours / 1024, bare / 1024, 'KiB', { most: 1.3 })],
    };
  },
};

async function measureGateway(): Promise<number> {
  await using product = await startProduct({
    shape: { gateways: 1, workers: 1 },
    gatewayArgs: ['--keep-alive', '10m'],
    nodeOptions: COLLECTING,
  });
  const gateway = product.gateways[0]?.pid ?? 0;
  const setupAgent = new Agent({ keepAlive: true, maxSockets: SETUP_WIDTH });
  const sessions = (await openSessions(product.url, CONNECTIONS, SETUP_WIDTH, setupAgent)).map(
    ({ sessionId }) => sessionId,
  );
  setupAgent.destroy();
  const before = await heldBytes(gateway);
  const agent = new Agent({ keepAlive: false });
  await eachOf(sessions, SETUP_WIDTH, async (session) => {
    const caller = new Caller(product.url, agent);
    caller.adopt(session);
    const stream = await caller.get();
    if (stream.status !== 200) throw new Error(`GET: ${stream.status} ${stream.text()}`);
  });
  return ((await heldBytes(gateway)) - before) / CONNECTIONS;
}

async function measureExpress(): Promise<number> {
  await using peer = await startPeer('express-sse', [], COLLECTING.split(' '));
  const open = async (isKept: boolean): Promise<void> => {
    await eachOf(Array.from({ length: CONNECTIONS }), SETUP_WIDTH, async () => {
      const stream = await openBareStream(peer.line, () => undefined);
      if (!isKept) stream.destroy();
    });
  };
  await open(false);
  const before = await heldBytes(peer.pid);
  await open(true);
  return ((await heldBytes(peer.pid)) - before) / CONNECTIONS;
}
