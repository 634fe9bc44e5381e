/** The product as a process, on a cluster that stops answering under it: connections stay open, and nothing comes. */
import process from 'node:process';
import { startProxiedKafka } from '@throughline/testkit/kafka';
import type { ProxiedKafka } from '@throughline/testkit/kafka';
import { makeKafkaPlace, makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const APPEND_MS = 3000;
const DRAIN_MS = 1000;
/** Both drain times, and the 15 s that stopping may take beyond them. */
const STOP_MS = 2 * DRAIN_MS + 15_000;
/** What a loaded machine may add to each wait. */
const SLACK_MS = 5000;

describe.skipIf((inject('kafka') as unknown) === null || process.env['KAFKA_BROKERS'] !== undefined)(
  'a cluster that stops answering',
  () => {
    let broker: ProxiedKafka;
    beforeAll(async () => {
      broker = await startProxiedKafka();
    }, 120_000);
    afterAll(() => broker.stop());

    it(
      '[WAIT-PROCESS] a call is refused or in doubt within the append deadline, and SIGTERM ends the process within its drain times and 15 s',
      { timeout: 150_000 },
      async () => {
        using folder = makeScratchFolder();
        const place = await makeKafkaPlace({ brokers: [broker.address] })(folder.path, {});
        await using serve = await startThroughline('serve', {
          folder: folder.path,
          args: [...place.args('serve'), '--append-timeout', `${APPEND_MS}ms`, '--drain', `${DRAIN_MS}ms`],
        });
        const client = await RawClient.connect(serve.url);
        const running = await client.callTool(serve.url, 'countdown', { from: 100, intervalMs: 100 });
        await running.until('progress', ({ data }) => data.includes('notifications/progress'));

        broker.proxy.swallow('both');
        let startedMs = performance.now();
        const refused = await within('the refusal', client.callTool(serve.url, 'countdown', { from: 1 }));
        expect(performance.now() - startedMs).toBeLessThan(APPEND_MS + SLACK_MS);
        expect([503, 504]).toContain(refused.status);
        const { error } = JSON.parse(await refused.text()) as { error: { data: Record<string, unknown> } };
        if (refused.status === 504) expect(error.data).toMatchObject({ code: 'APPEND_UNKNOWN', mayHaveRun: true });
        else expect(refused.headers['retry-after']).toBeDefined();

        startedMs = performance.now();
        const { code, signal } = await serve.stop();
        expect(performance.now() - startedMs).toBeLessThan(STOP_MS + SLACK_MS);
        // By itself, not by a signal; with 1 if something had to be left behind.
        expect(signal).toBeNull();
        expect([0, 1]).toContain(code);
      },
    );
  },
);
