/** Hosts that hang: what a client hears of it, and when. Log and host in every place: tests/deadlines. */
import { describe, expect, it } from 'vitest';
import { sleep } from '@throughline/log';
import { hostWithin, HOST_MS } from './consume/host-deadlines.ts';
import { createVirtualTime } from '@throughline/testkit';
import { textOf } from './testing/messages.ts';
import { openBench } from './testing/worker-bench.ts';

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};

interface Failure {
  readonly error?: { readonly data?: Readonly<Record<string, unknown>>; readonly message: string };
}

describe('a server that does not answer', () => {
  it('[WAIT-HOST] in 35 s to initialize fails that call, which may have run, and its session is over', async () => {
    const bench = await openBench(1);
    const { host } = await bench.start({ host: { ignores: new Set(['initialize']) } });
    const [at = -1] = await bench.post('s', [initialize]);
    const began = bench.time.nowMs();
    const { messages } = await bench.ended(at, 60_000);
    const { error } = messages[0] as Failure;
    expect(error?.data).toMatchObject({ code: 'SERVER_FAILED', mayHaveRun: true });
    expect(error?.message).toBe('The server failed: it did not answer in time');
    expect(bench.time.nowMs() - began).toBeLessThan(36_000);
    await bench.until(() => bench.session('s').endReason === 'server-gone');
    expect(host.opened.every(({ isClosed }) => isClosed)).toBe(true);
    await bench.dispose();
  });

  it('[WAIT-HOST] a step of a host has its own time, and what comes later is given back', async () => {
    expect(HOST_MS).toEqual({ open: 30_000, initialize: 35_000, handOver: 45_000, close: 10_000 });
    const time = createVirtualTime({ seed: 1 });
    const clock = time.clock();
    const late: string[] = [];
    const opening = Promise.withResolvers<string>();
    const within = hostWithin(clock, 30_000, 'start', opening.promise, (value) => late.push(value));
    await expect(time.run(within)).rejects.toMatchObject({
      code: 'HOST_TIMEOUT',
      message: 'the server did not start within 30 s',
    });
    opening.resolve('instance');
    await time.settle();
    expect(late).toEqual(['instance']);
    expect(await time.run(hostWithin(clock, 30_000, 'start', Promise.resolve('there')))).toBe('there');
    expect(time.pending()).toBe(0);
  });

  it('[WAIT-LOG] [BRK-OUTAGE] a worker that waits for acks for longer than 30 s keeps its claim, and its call, as long as it waits', async () => {
    const bench = await openBench(5);
    const clock = bench.time.clock('outage');
    let outUntilMs = 0;
    const { worker } = await bench.start({
      config: { heartbeatMs: 100, deadAfterMs: 100_000, checkpointMs: 500, appendTimeoutMs: 120_000 },
      wrap: (log) => ({
        ...log,
        async append(to, records) {
          if (to.topic === 'events') await sleep(clock, Math.max(0, outUntilMs - clock.monoMs()));
          return await log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    const claims = (): number => bench.accepted().filter(({ body }) => body.type === 'claimed').length;
    const before = claims();
    const at = await bench.call('k', 1, 'effect', { ms: 1000, token: 't' });
    await bench.until(() => bench.runs.length === 1);
    outUntilMs = clock.monoMs() + 80_000;
    expect(textOf((await bench.ended(at)).messages[0])).toBe('effect t');
    expect([claims(), worker.owned()]).toEqual([before, [0]]);
    await bench.dispose();
  });
});
