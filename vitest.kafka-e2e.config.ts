// The end-to-end tests on Kafka: the same files that run on the embedded log, on a broker that is found or started for
// all of them. Without any they are skipped, and counted.
import process from 'node:process';
import { defineConfig } from 'vitest/config';

const CHANGE = ['official-clients', 'refused-resume', 'session-end', 'gateway-kill', 'worker-kill'];
const DEEP = [...CHANGE, 'ask-once', 'rolling-replacement', 'producer'];

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: (process.env['DEEP'] === '1' ? DEEP : CHANGE).map((name) => `tests/e2e/${name}.test.ts`),
    globalSetup: ['libs/testkit/src/kafka/global-setup.ts'],
    testTimeout: 40_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
