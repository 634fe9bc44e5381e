// Tests that need a broker: one is found or started for all of them. Without any they are skipped, and counted.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: ['libs/**/*.kafka.test.ts', 'services/**/*.kafka.test.ts', 'tests/**/*.kafka.test.ts'],
    globalSetup: ['libs/testkit/src/kafka/global-setup.ts'],
    testTimeout: 40_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
