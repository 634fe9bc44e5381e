// The end-to-end tests on Kafka: the same files that run on the embedded log, on a broker that is found or started for
// all of them. Without any they are skipped, and counted.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: [
      'gateway-kill',
      'worker-kill',
      'official-clients',
      'refused-resume',
      'rolling-replacement',
      'session-end',
    ].map((name) => `tests/e2e/${name}.test.ts`),
    globalSetup: ['libs/testkit/src/kafka/global-setup.ts'],
    testTimeout: 40_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
  },
});
