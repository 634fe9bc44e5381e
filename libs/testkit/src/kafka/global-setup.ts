/** For vitest: one broker for all files of a run. They take its address by `inject('kafka')`. */
import type { TestProject } from 'vitest/node';
import { findKafka } from './find-kafka.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Not given outside of the Kafka lane; `null` in it: there is no broker. */
    kafka: { readonly brokers: readonly string[] } | null;
  }
}

/** The name is vitest's. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const found = await findKafka();
  project.provide('kafka', found.from === 'none' ? null : { brokers: found.brokers });
  return async () => {
    if (found.from !== 'none') await found.stop();
  };
}
