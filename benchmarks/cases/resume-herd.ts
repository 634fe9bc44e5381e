/** All clients of a gateway come back at once, each with messages that it missed. */
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Caller, eachOf, firstId } from '../lib/caller.ts';
import { percentile } from '../lib/figures.ts';
import { cpuMs } from '../lib/process-usage.ts';
import { startProduct } from '../lib/product.ts';
import { limitRow, plainRow } from '../lib/result.ts';
import type { BenchCase } from '../lib/result.ts';

const CLIENTS = 5000;
const MISSED = 20;
const SETUP_WIDTH = 64;
/** What the worker has sent reaches the log. */
const SETTLE_MS = 2000;

export const resumeHerd: BenchCase = {
  name: 'resume of all at once',
  async run() {
    await using product = await startProduct({ shape: { gateways: 1, workers: 1 } });
    const agent = new Agent({ keepAlive: false });
    const waiting: { readonly caller: Caller; readonly cursor: string }[] = [];
    const setupAgent = new Agent({ keepAlive: true, maxSockets: SETUP_WIDTH });
    await eachOf(Array.from({ length: CLIENTS }), SETUP_WIDTH, async () => {
      const caller = new Caller(product.url, setupAgent);
      await caller.initialize();
      const call = await caller.start('burst', { count: MISSED, intervalMs: 0, gate: 'all' }, true);
      await call.until('\n\n');
      const cursor = firstId(call.text());
      call.cut();
      waiting.push({ caller, cursor });
    });
    // All connections are dropped before the first message: whatever comes, comes while nobody listens.
    const opener = new Caller(product.url);
    await opener.initialize();
    await opener.call('open', { gate: 'all' });
    opener.close();
    await pause(SETTLE_MS);
    setupAgent.destroy();

    const gateway = product.gateways[0]?.pid ?? 0;
    const before = cpuMs(gateway);
    const startedAt = performance.now();
    const times: number[] = [];
    let lost = 0;
    let repeated = 0;
    await Promise.all(
      waiting.map(async ({ caller, cursor }) => {
        const again = new Caller(product.url, agent);
        again.adopt(caller.sessionId);
        const stream = await again.get(cursor);
        await stream.ended;
        times.push(performance.now() - startedAt);
        const seen = [...stream.text().matchAll(/"progress":(\d+)/g)].map(([, number]) => Number(number));
        const unique = new Set(seen);
        lost += MISSED - unique.size + (stream.text().includes(`sent ${MISSED}`) ? 0 : 1);
        repeated += seen.length - unique.size;
      }),
    );
    const spent = cpuMs(gateway) - before;
    return {
      name: this.name,
      setup: `${CLIENTS} sessions with a call each, ${MISSED} progress notifications and the result missed, one gateway and one worker on a file; all GETs with Last-Event-ID at once, each on a connection of its own, times from the first GET to the end of the stream; the clients share the two cores`,
      rows: [
        limitRow('time to the last missed message, p99', percentile(times, 0.99), 'ms', 2000),
        limitRow('CPU of the gateway a client', spent / CLIENTS, 'ms', 0.5),
        limitRow('messages lost', lost, '', 0),
        limitRow('messages repeated', repeated, '', 0),
        plainRow('time, p50', percentile(times, 0.5), 'ms'),
      ],
    };
  },
};
