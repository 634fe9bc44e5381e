// Tests that need several brokers, which they kill: each file starts its own, so one at a time. Without Docker and Java
// they are skipped, and counted. Those of the whole product take minutes: they run in the deep lane only, but for a few
// faults.
import process from 'node:process';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: [
      ...['libs/**/*.cluster.test.ts', 'services/**/*.cluster.test.ts'],
      process.env['DEEP'] === '1' ? 'tests/**/*.cluster.test.ts' : 'tests/resilience/faults.cluster.test.ts',
    ],
    globalSetup: ['libs/testkit/src/kafka/cluster-setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    maxWorkers: 1,
  },
});
