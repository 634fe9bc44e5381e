// Tests that need a broker: one is found or started for all of them. Without any they are skipped, and counted.
import process from 'node:process';
import { configDefaults, defineConfig } from 'vitest/config';

/** Most of it is waiting: in the deep lane only. */
const DEEP_ONLY = ['tests/deadlines/silent-cluster.kafka.test.ts'];

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: ['libs/**/*.kafka.test.ts', 'services/**/*.kafka.test.ts', 'tests/**/*.kafka.test.ts'],
    exclude: [...configDefaults.exclude, ...(process.env['DEEP'] === '1' ? [] : DEEP_ONLY)],
    globalSetup: ['libs/testkit/src/kafka/global-setup.ts'],
    testTimeout: 40_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
