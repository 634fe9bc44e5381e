/** A cluster of brokers in containers on a network of their own, each reachable from this host. */
import { randomUUID } from 'node:crypto';
import type { ClusterOptions, KafkaCluster } from './cluster-port.ts';
import { clusterProperties, findMember } from './cluster-port.ts';
import { aliasOf, startContainerBroker } from './container-broker.ts';
import type { ContainerBroker } from './container-broker.ts';
import { ownerLabels } from './container-runtime.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import { findParty, startParties } from './party-links.ts';
import { makeSmallDisk } from './small-disk.ts';

const TOOL_SECONDS = 60;

/** 5 to 10 s. Rejects when a broker is not ready in time. */
export async function startClusterOn(runtime: ContainerRuntime, options: ClusterOptions): Promise<KafkaCluster> {
  const ids = Array.from({ length: options.brokers ?? 3 }, (_, index) => index + 1);
  const networkName = `throughline-test-${randomUUID()}`;
  const network = await runtime.network.create({ Name: networkName, Labels: ownerLabels() });
  const parties = await startParties(options.parties ?? [], ids);
  const smallDisk = options.smallDiskMb === undefined ? null : makeSmallDisk(options.smallDiskMb);
  const members: ContainerBroker[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(members.splice(0).map((member) => member.remove()));
    await parties.stop();
    smallDisk?.remove();
    await network.remove().catch((error: unknown) => {
      if ((error as { readonly statusCode?: number }).statusCode !== 404) throw error;
    });
  };
  const properties = { ...clusterProperties(ids.length), ...options.overrides };
  const starts = await Promise.allSettled(
    ids.map(async (id) => {
      const broker = await startContainerBroker(runtime, {
        ...{ id, ids, networkName, properties },
        heapMb: options.heapMb ?? 256,
        parties: parties.listenersOf(id),
        ...(smallDisk !== null && id === ids.at(-1) ? { dataFolder: smallDisk.folder } : {}),
      });
      members.push(broker);
    }),
  );
  const failed = starts.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  members.sort((a, b) => a.id - b.id);
  const all = [...members];
  return {
    from: 'container',
    members: all,
    brokers: all.map(({ address }) => address),
    member: (id) => findMember(all, id),
    network: {
      async disconnect(id) {
        await network.disconnect({ Container: containerOf(all, id), Force: true });
      },
      async connect(id) {
        await network.connect({ Container: containerOf(all, id), EndpointConfig: { Aliases: [aliasOf(id)] } });
      },
    },
    party: (name) => findParty(parties, name),
    smallDisk,
    toolBootstrap: all.map(({ insideAddress }) => insideAddress).join(','),
    async runTool(name, args, { input = '', deadlineMs = TOOL_SECONDS * 1000 } = {}) {
      const where = await firstServing(all);
      // Arguments go in beside the script, not into it: nothing needs to be quoted.
      const script = 'input=$1; shift; printf %s "$input" | "$@"';
      const limit = ['timeout', String(Math.ceil(deadlineMs / 1000))];
      const tool = [...limit, `/opt/kafka/bin/${name}.sh`, ...args];
      const { exitCode, output } = await where.exec(['bash', '-c', script, 'tool', input, ...tool]);
      return { code: exitCode, output };
    },
    stop,
  };
}

function containerOf(members: readonly ContainerBroker[], id: number): string {
  findMember(members, id);
  return members.find((member) => member.id === id)?.containerId ?? '';
}

async function firstServing(members: readonly ContainerBroker[]): Promise<ContainerBroker> {
  for (const member of members) if (await member.isServing()) return member;
  throw new Error('no broker runs');
}
