/**
 * Brokers in containers, if an engine answers and has the image or can pull it. Testcontainers is loaded here and not
 * before: it is large, and most runs of these modules never need it.
 */
import { errorText } from '@throughline/log';
import type { ClusterOptions, KafkaBroker, KafkaCluster } from './cluster-port.ts';
import { SINGLE_BROKER } from './cluster-port.ts';
import type { ContainerRuntime } from './container-runtime.ts';

export interface ContainerKafka {
  readonly broker: KafkaBroker;
  stop(): Promise<void>;
}

const HEAP_MB = 400;

/** Null where no Docker engine answers; rejects where one does and the image or the broker does not come. About 3 s. */
export async function startContainerKafka(
  overrides: Readonly<Record<string, string>> = {},
): Promise<ContainerKafka | null> {
  const runtime = await openRuntimeWithImage();
  if (runtime === null) return null;
  const { startContainerBroker } = await import('./container-broker.ts');
  const broker = await startContainerBroker(runtime, {
    ...{ id: 1, ids: [1], networkName: null, heapMb: HEAP_MB },
    properties: { ...SINGLE_BROKER, ...overrides },
  });
  return { broker, stop: () => broker.remove() };
}

/** Null where no Docker engine answers; rejects where one does and the image or the cluster does not come. 5 to 10 s. */
export async function startContainerCluster(options: ClusterOptions = {}): Promise<KafkaCluster | null> {
  const runtime = await openRuntimeWithImage();
  if (runtime === null) return null;
  const { startClusterOn } = await import('./container-cluster.ts');
  return await startClusterOn(runtime, options);
}

/** Whether brokers can be had in containers; rejects where an engine answers without a way to the image. */
export async function hasContainers(): Promise<boolean> {
  return (await openRuntimeWithImage()) !== null;
}

async function openRuntimeWithImage(): Promise<ContainerRuntime | null> {
  const { findDocker } = await import('./find-docker.ts');
  if ((await findDocker()) === null) return null;
  const { ensureImage, openContainerRuntime } = await import('./container-runtime.ts');
  const runtime = await openContainerRuntime();
  if (runtime === null) return null;
  const { kafkaImage } = await import('./container-broker.ts');
  const image = kafkaImage();
  try {
    await ensureImage(runtime, image);
  } catch (error) {
    const reason = errorText(error);
    throw new Error(`no image ${image}; \`npm run containers start\` pulls or builds it: ${reason}`, { cause: error });
  }
  return runtime;
}
