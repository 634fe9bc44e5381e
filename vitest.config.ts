import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { conditions: ['@throughline/source', 'node'] },
  ssr: { resolve: { conditions: ['@throughline/source', 'node'] } },
  test: {
    include: [
      'libs/**/*.test.ts',
      'services/**/*.test.ts',
      'tests/**/*.test.ts',
      'infra/**/*.test.ts',
      'examples/**/*.test.ts',
    ],
    // They need brokers: vitest.kafka.config.ts, vitest.cluster.config.ts.
    exclude: [...configDefaults.exclude, '**/*.kafka.test.ts', '**/*.cluster.test.ts'],
    testTimeout: 20_000,
    maxWorkers: 2,
  },
});
