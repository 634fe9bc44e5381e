/** Which brokers tests get that need several of them: containers, else processes. */
import process from 'node:process';
import { errorText } from '@throughline/log';
import type { ClusterOptions, KafkaCluster } from './cluster-port.ts';
import { hasContainers, startContainerCluster } from './containers.ts';
import { findJava } from './java-broker.ts';
import { findKafkaJars } from './kafka-jars.ts';
import { startLocalCluster } from './local-cluster.ts';

export type ClusterKind = KafkaCluster['from'];

/**
 * What `startCluster` would start, or null with the reason on stderr. With `REQUIRE_CONTAINERS=1` only containers
 * will do, with `REQUIRE_KAFKA=1` anything; it rejects where that cannot be had.
 */
export async function findClusterKind(
  probes: { readonly containers: () => Promise<boolean>; readonly java: () => Promise<unknown> } = {
    containers: hasContainers,
    java: async () => {
      await findJava();
      await findKafkaJars();
    },
  },
  environment: Readonly<Record<string, string | undefined>> = process.env,
  say: (text: string) => unknown = (text) => process.stderr.write(text),
): Promise<ClusterKind | null> {
  const reasons: string[] = [];
  try {
    if (await probes.containers()) return 'container';
    reasons.push('no Docker engine answers');
  } catch (error) {
    reasons.push(errorText(error));
  }
  if (environment['REQUIRE_CONTAINERS'] === '1') throw new Error(`REQUIRE_CONTAINERS=1, and ${reasons.join('; ')}`);
  try {
    await probes.java();
    return 'local';
  } catch (error) {
    reasons.push(errorText(error));
  }
  if (environment['REQUIRE_KAFKA'] === '1')
    throw new Error(`REQUIRE_KAFKA=1, and there are no brokers: ${reasons.join('; ')}`);
  say(`\nTests of several brokers are SKIPPED: ${reasons.join('; ')}\n`);
  return null;
}

/** Rejects when neither containers nor Java can be had. Whoever starts a cluster stops it. */
export async function startCluster(options: ClusterOptions = {}): Promise<KafkaCluster> {
  const kind = await findClusterKind();
  if (kind === null) throw new Error('neither Docker nor Java gives brokers');
  const cluster = kind === 'container' ? await startContainerCluster(options) : null;
  return cluster ?? (await startLocalCluster(options));
}
