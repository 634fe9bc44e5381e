/** A cluster of brokers as child processes, for machines without Docker. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClusterOptions, KafkaBroker, KafkaCluster } from './cluster-port.ts';
import { clusterProperties, findMember, partyProperties } from './cluster-port.ts';
import { findFreePort, LOOPBACK } from '../free-port.ts';
import { prepareJavaBroker, runJavaTool } from './java-broker.ts';
import type { JavaBroker } from './java-broker.ts';
import { findKafkaJars } from './kafka-jars.ts';
import { findParty, startParties } from './party-links.ts';
import { makeSmallDisk } from './small-disk.ts';

const CLUSTER_ID = '4L6g3nShT-eMCtK--X86sw';
const READY_MS = 120_000;
/** How brokers fetch from each other, where there are parties. */
const BROKERS = 'brokers';

/** Needs Java 17. Rejects with what a broker wrote when it is not ready in time. 10 s or so. */
export async function startLocalCluster(options: ClusterOptions = {}): Promise<KafkaCluster> {
  const jars = await findKafkaJars();
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-cluster-'));
  const ids = Array.from({ length: options.brokers ?? 3 }, (_, index) => index + 1);
  const places = new Map<number, { readonly port: number; readonly controllerPort: number }>();
  for (const id of ids) places.set(id, { port: await findFreePort(), controllerPort: await findFreePort() });
  const voters = [...places].map(([id, { controllerPort }]) => `${id}@${LOOPBACK}:${controllerPort}`).join(',');

  const names = options.parties ?? [];
  const parties = await startParties(names.length === 0 ? [] : [...names, BROKERS], ids);
  const smallDisk = options.smallDiskMb === undefined ? null : makeSmallDisk(options.smallDiskMb);
  const processes: JavaBroker[] = [];
  const prepare = async (id: number): Promise<KafkaBroker> => {
    const { port, controllerPort } = places.get(id)!;
    const own = path.join(folder, String(id));
    mkdirSync(own);
    const address = `${LOOPBACK}:${port}`;
    const listeners = parties.listenersOf(id);
    const base = {
      listeners: `PLAINTEXT://${address},CONTROLLER://${LOOPBACK}:${controllerPort}`,
      'advertised.listeners': `PLAINTEXT://${address}`,
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    };
    const disk = id === ids.at(-1) && smallDisk !== null ? smallDisk.folder : own;
    const broker = await prepareJavaBroker({
      ...{ jars, folder: own, clusterId: CLUSTER_ID, isStandalone: false },
      properties: {
        'process.roles': 'broker,controller',
        'node.id': String(id),
        ...partyProperties(
          base,
          listeners.map(({ name, port: at, advertised }) => ({ name, bind: `${LOOPBACK}:${at}`, advertised })),
        ),
        'inter.broker.listener.name': listeners.find(({ party }) => party === BROKERS)?.name ?? 'PLAINTEXT',
        'controller.listener.names': 'CONTROLLER',
        'controller.quorum.voters': voters,
        'log.dirs': path.join(disk, 'data'),
        ...clusterProperties(ids.length),
        ...options.overrides,
      },
      heapMb: options.heapMb ?? 256,
      readyMs: READY_MS,
    });
    processes.push(broker);
    return control(broker, id, address);
  };
  const stop = async (): Promise<void> => {
    // At once, not in order: no data is kept, and the last of a quorum would wait for the others.
    await Promise.all(processes.map((broker) => broker.end('SIGKILL')));
    for (const broker of processes) broker.forget();
    await parties.stop();
    smallDisk?.remove();
    rmSync(folder, { recursive: true, force: true });
  };

  try {
    const members: KafkaBroker[] = [];
    for (const id of ids) members.push(await prepare(id));
    // Together: one alone waits for a quorum.
    await Promise.all(members.map((member) => member.start()));
    const brokers = members.map(({ address }) => address);
    return {
      from: 'local',
      members,
      brokers,
      member: (id) => findMember(members, id),
      network: null,
      party: (name) => findParty(parties, name),
      smallDisk,
      toolBootstrap: brokers.join(','),
      runTool: (name, args, toolOptions) => runJavaTool(jars, name, args, toolOptions),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function control(broker: JavaBroker, id: number, address: string): KafkaBroker {
  return {
    id,
    address,
    isRunning: () => Promise.resolve(broker.isRunning()),
    kill: () => broker.end('SIGKILL'),
    stop: () => broker.end('SIGTERM'),
    start: () => broker.start(),
    async restart() {
      await broker.end('SIGTERM');
      await broker.start();
    },
    async pause() {
      broker.signal('SIGSTOP');
    },
    async resume() {
      broker.signal('SIGCONT');
    },
    output: async () => broker.output(),
  };
}
