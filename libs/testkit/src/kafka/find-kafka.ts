/** Which Kafka tests run on: the one that is named, else a container, else a broker as a child process. */
import process from 'node:process';
import { startLocalKafka } from './local-kafka.ts';
import type { LocalKafka } from './local-kafka.ts';

export interface FoundKafka {
  readonly from: 'environment' | 'container' | 'local';
  readonly brokers: readonly string[];
  /** For what only a broker of our own can do. */
  readonly local: LocalKafka | null;
  stop(): Promise<void>;
}

export interface NoKafka {
  readonly from: 'none';
  readonly reason: string;
}

/** Settings that make a broker quick in what tests wait for. It creates topics by itself, so that nobody relies on its not doing so. */
export const TEST_BROKER: Readonly<Record<string, string>> = {
  'auto.create.topics.enable': 'true',
  'log.retention.check.interval.ms': '1000',
  'log.cleaner.backoff.ms': '100',
  'log.cleaner.dedupe.buffer.size': '16777216',
  'group.min.session.timeout.ms': '500',
  'transaction.max.timeout.ms': '60000',
};

/**
 * Order: `KAFKA_BROKERS`, container, local JVM. Without any it says why, on stderr; with `REQUIRE_KAFKA=1` it throws.
 */
export async function findKafka(
  launch: () => Promise<{ readonly kafka: LocalKafka }> = async () => ({
    kafka: await startLocalKafka({ overrides: TEST_BROKER }),
  }),
  environment: Readonly<Record<string, string | undefined>> = process.env,
  say: (text: string) => unknown = (text) => process.stderr.write(text),
): Promise<FoundKafka | NoKafka> {
  const named = environment['KAFKA_BROKERS'] ?? '';
  if (named !== '')
    return { from: 'environment', brokers: named.split(','), local: null, stop: () => Promise.resolve() };
  const container = await startContainerKafka();
  if (container !== null) return container;
  try {
    const { kafka } = await launch();
    return { from: 'local', brokers: kafka.brokers, local: kafka, stop: () => kafka.stop() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (environment['REQUIRE_KAFKA'] === '1') throw new Error(`REQUIRE_KAFKA=1, and there is no Kafka: ${reason}`);
    say(`\nKafka tests are SKIPPED, there is no broker: ${reason}\n`);
    return { from: 'none', reason };
  }
}

/**
 * HOOK for the container lane: Testcontainers with the apache/kafka image goes here, and gives `from: 'container'`;
 * `null` where no Docker answers.
 */
function startContainerKafka(): Promise<FoundKafka | null> {
  return Promise.resolve(null);
}
