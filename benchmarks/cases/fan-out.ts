/** What a message costs, from `send` in the server to the client's socket, and what its delivery alone costs. */
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { bareEvent } from '../lib/bare-event.ts';
import { openBareStream } from '../lib/bare-stream.ts';
import { Caller, eachOf, openSessions } from '../lib/caller.ts';
import type { Stream } from '../lib/caller.ts';
import { cpuMs } from '../lib/process-usage.ts';
import { startProduct } from '../lib/product.ts';
import { limitRow, ratioRow } from '../lib/result.ts';
import type { BenchCase } from '../lib/result.ts';
import { startPeer } from '../lib/start-peer.ts';

const STREAMS = 500;
const MESSAGES = 100;
const CONNECTIONS = 5000;
const EVENTS = 10;
const SETUP_WIDTH = 64;
/** What opening the calls left to do. */
const SETTLE_MS = 2000;
const ARRIVAL_MS = 60_000;

export const costOfMessage: BenchCase = {
  name: 'CPU a message',
  async run() {
    await using product = await startProduct({ shape: 'serve' });
    const spent = await burst(product.url, STREAMS, MESSAGES, 0, () => cpuMs(...product.pids()));
    return {
      name: this.name,
      setup: `${STREAMS} calls in ${STREAMS} sessions, ${MESSAGES} progress notifications of about 300 bytes each, sent as fast as the server can; serve (one process) on a file; all CPU of the process from the first message to the end of the last stream`,
      rows: [limitRow('CPU a message', (spent * 1000) / (STREAMS * MESSAGES), 'µs', 60)],
    };
  },
};

export const costOfDelivery: BenchCase = {
  name: 'CPU a delivered event',
  async run() {
    const ours = await measureGateway();
    const bare = await measureExpress();
    return {
      name: this.name,
      setup: `${CONNECTIONS} connections, ${EVENTS} events of about 300 bytes each; the gateway in a process of its own, its CPU alone, reading the log included; bare: \`res.write\` in Express`,
      rows: [ratioRow('CPU a delivered event', ours, bare, 'µs', { most: 2 })],
    };
  },
};

async function measureGateway(): Promise<number> {
  await using product = await startProduct({ shape: { gateways: 1, workers: 1 } });
  const gateway = product.gateways[0]?.pid ?? 0;
  const spent = await burst(product.url, CONNECTIONS, EVENTS, 200, () => cpuMs(gateway));
  return (spent * 1000) / (CONNECTIONS * EVENTS);
}

/** CPU from before the first message to the end of the last stream. */
async function burst(
  url: string,
  streams: number,
  messages: number,
  intervalMs: number,
  readCpu: () => number,
): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const callers = await openSessions(url, streams, SETUP_WIDTH, agent);
  // The calls wait for each other, so that what is measured is sending alone.
  const gate = 'burst';
  const open: Stream[] = [];
  await eachOf(callers, SETUP_WIDTH, async (caller) => {
    const stream = await caller.start('burst', { count: messages, intervalMs, gate }, true);
    await stream.until('\n\n');
    open.push(stream);
  });
  const opener = new Caller(url);
  await opener.initialize();
  await pause(SETTLE_MS);
  const before = readCpu();
  const opened = opener.call('open', { gate });
  await Promise.all(
    open.map(async (stream) => {
      await stream.ended;
      const count = stream.text().split('"progress":').length - 1;
      if (count !== messages) throw new Error(`${count} of ${messages} messages came`);
    }),
  );
  const spent = readCpu() - before;
  await opened;
  opener.close();
  agent.destroy();
  return spent;
}

async function measureExpress(): Promise<number> {
  await using peer = await startPeer('express-sse');
  let bytes = 0;
  const sockets: { destroy(): void }[] = [];
  await eachOf(Array.from({ length: CONNECTIONS }), SETUP_WIDTH, async () => {
    sockets.push(
      await openBareStream(peer.line, (count) => {
        bytes += count;
      }),
    );
  });
  const before = cpuMs(peer.pid);
  const expected = bytes + CONNECTIONS * EVENTS * bareEvent(1).length;
  await new Promise<void>((resolve, reject) => {
    const sent = request(`${peer.line}/send/${EVENTS}`, { method: 'POST' }, (response) => {
      response.resume().on('end', () => resolve());
    });
    sent.on('error', reject);
    sent.end();
  });
  const until = performance.now() + ARRIVAL_MS;
  while (bytes < expected) {
    if (performance.now() > until) throw new Error(`${bytes} of ${expected} bytes came`);
    await pause(10);
  }
  const spent = cpuMs(peer.pid) - before;
  for (const socket of sockets) socket.destroy();
  return (spent * 1000) / (CONNECTIONS * EVENTS);
}
