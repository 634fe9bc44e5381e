// The end-to-end tests on Kafka: the same files that run on the embedded log, on a broker that is found or started for
// all of them. Without any they are skipped, and counted.
import process from 'node:process';
import { defineConfig } from 'vitest/config';

const inE2e = (names: readonly string[]): string[] => names.map((name) => `tests/e2e/${name}.test.ts`);
const CHANGE = inE2e(['official-clients', 'refused-resume', 'session-end', 'gateway-kill', 'worker-kill']);
const DEEP = [
  ...CHANGE,
  ...inE2e(['ask-once', 'rolling-replacement', 'producer', 'poison-records']),
  'tests/conformance/official-suite.test.ts',
];

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: process.env['DEEP'] === '1' ? DEEP : CHANGE,
    globalSetup: ['libs/testkit/src/kafka/global-setup.ts'],
    testTimeout: 40_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
