/** What more replicas cost the brokers. */
import { startLocalKafka } from '@throughline/testkit/kafka';
import { Caller } from '../lib/caller.ts';
import { startCountingProxy } from '../lib/counting-proxy.ts';
import { startProduct } from '../lib/product.ts';
import { plainRow, ratioRow } from '../lib/result.ts';
import type { BenchCase, Row } from '../lib/result.ts';

const CALLS = 300;
const TEXT = 'x'.repeat(200);

export const replicas: BenchCase = {
  name: 'replicas',
  async run() {
    const small = await measure(1, 'one');
    const large = await measure(3, 'three');
    const rows: Row[] = [
      ratioRow('produce requests a call, 3 + 3 against 1 + 1', large.produces, small.produces, '', { most: 1.1 }),
      plainRow('bytes read from the broker a call, 1 gateway and 1 worker', small.bytes, 'B'),
      plainRow('bytes read from the broker a call, 3 gateways and 3 workers', large.bytes, 'B'),
    ];
    return {
      name: this.name,
      setup: `${CALLS} calls with effects one after the other, text of ${TEXT.length} bytes, in one session; what the processes write at rest (heartbeats, checkpoints) is measured over the same time and taken off`,
      rows,
    };
  },
};

async function measure(count: number, prefix: string): Promise<{ produces: number; bytes: number }> {
  let brokerPort = 0;
  await using proxy = await startCountingProxy(() => brokerPort);
  const kafka = await startLocalKafka({
    overrides: { 'advertised.listeners': `PLAINTEXT://127.0.0.1:${proxy.port}` },
  });
  try {
    brokerPort = Number(kafka.brokers[0]?.split(':')[1]);
    await using product = await startProduct({
      shape: { gateways: count, workers: count },
      kafka: { brokers: [`127.0.0.1:${proxy.port}`], prefix },
    });
    const callers = product.gateways.map(({ url }) => new Caller(url));
    await callers[0]?.initialize();
    for (const caller of callers.slice(1)) caller.adopt(callers[0]?.sessionId ?? '');
    for (const caller of callers) await caller.call('act', { text: TEXT });
    const busy = await during(proxy.counts, async () => {
      for (let call = 0; call < CALLS; call += 1) await callers[call % count]?.call('act', { text: TEXT });
    });
    const idle = await during(proxy.counts, () => new Promise((resolve) => setTimeout(resolve, busy.ms)));
    for (const caller of callers) caller.close();
    return { produces: (busy.produces - idle.produces) / CALLS, bytes: (busy.bytes - idle.bytes) / CALLS };
  } finally {
    await kafka.stop();
  }
}

async function during(
  counts: () => { readonly produces: number; readonly answeredBytes: number },
  work: () => Promise<void>,
): Promise<{ ms: number; produces: number; bytes: number }> {
  const before = counts();
  const startedAt = performance.now();
  await work();
  const after = counts();
  return {
    ms: performance.now() - startedAt,
    produces: after.produces - before.produces,
    bytes: after.answeredBytes - before.answeredBytes,
  };
}
