/** Which Kafka tests run on: the one that is named, else a container, else a broker as a child process. */
import process from 'node:process';
import { errorText } from '@throughline/log';
import { startContainerKafka } from './containers.ts';
import { startLocalKafka } from './local-kafka.ts';

export interface FoundKafka {
  readonly from: 'environment' | 'container' | 'local';
  readonly brokers: readonly string[];
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

/** How a broker is started: the container gives null where no Docker engine answers, both reject with a reason. */
export interface KafkaLaunchers {
  container(): Promise<{ readonly address: string; stop(): Promise<void> } | null>;
  local(): Promise<{ readonly brokers: readonly string[]; stop(): Promise<void> }>;
}

const LAUNCHERS: KafkaLaunchers = {
  async container() {
    const kafka = await startContainerKafka(TEST_BROKER);
    return kafka === null ? null : { address: kafka.broker.address, stop: kafka.stop };
  },
  local: () => startLocalKafka({ overrides: TEST_BROKER }),
};

/**
 * Order: `KAFKA_BROKERS`, container, local JVM; with `KAFKA_VERSION`, which names another version, a local JVM of that. Without any it says why, on stderr; with `REQUIRE_KAFKA=1` it throws.
 * With `REQUIRE_CONTAINERS=1` the container is the only one.
 */
export async function findKafka(
  launchers: KafkaLaunchers = LAUNCHERS,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  say: (text: string) => unknown = (text) => process.stderr.write(text),
): Promise<FoundKafka | NoKafka> {
  const mustBeContainer = environment['REQUIRE_CONTAINERS'] === '1';
  const named = environment['KAFKA_BROKERS'] ?? '';
  if (named !== '' && !mustBeContainer)
    return { from: 'environment', brokers: named.split(','), stop: () => Promise.resolve() };
  const reasons: string[] = [];
  try {
    const isVersionNamed = (environment['KAFKA_VERSION'] ?? '') !== '' && !mustBeContainer;
    const container = isVersionNamed ? null : await launchers.container();
    if (container !== null) {
      say(`\nKafka tests run on a container at ${container.address}.\n`);
      return { from: 'container', brokers: [container.address], stop: () => container.stop() };
    }
    reasons.push(isVersionNamed ? 'KAFKA_VERSION is set' : 'no Docker engine answers');
  } catch (error) {
    reasons.push(errorText(error));
  }
  if (mustBeContainer) throw new Error(`REQUIRE_CONTAINERS=1, and there is no broker in one: ${reasons.join('; ')}`);
  try {
    const local = await launchers.local();
    say(`\nKafka tests run on a process at ${local.brokers.join(',')}: ${reasons.join('; ')}.\n`);
    return { from: 'local', brokers: local.brokers, stop: () => local.stop() };
  } catch (error) {
    reasons.push(errorText(error));
  }
  const reason = reasons.join('; ');
  if (environment['REQUIRE_KAFKA'] === '1') throw new Error(`REQUIRE_KAFKA=1, and there is no Kafka: ${reason}`);
  say(`\nKafka tests are SKIPPED, there is no broker: ${reason}\n`);
  return { from: 'none', reason };
}
