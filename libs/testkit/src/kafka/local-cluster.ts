/** A cluster of brokers as child processes, for machines without Docker. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClusterOptions, KafkaBroker, KafkaCluster } from './cluster-port.ts';
import { clusterProperties, findMember } from './cluster-port.ts';
import { findFreePort, LOOPBACK } from '../free-port.ts';
import { prepareJavaBroker, runJavaTool } from './java-broker.ts';
import type { JavaBroker } from './java-broker.ts';
import { findKafkaJars } from './kafka-jars.ts';

const CLUSTER_ID = '4L6g3nShT-eMCtK--X86sw';
const READY_MS = 120_000;

/** Needs Java 17. Rejects with what a broker wrote when it is not ready in time. 10 s or so. */
export async function startLocalCluster(options: ClusterOptions = {}): Promise<KafkaCluster> {
  const jars = await findKafkaJars();
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-cluster-'));
  const ids = Array.from({ length: options.brokers ?? 3 }, (_, index) => index + 1);
  const places = new Map<number, { readonly port: number; readonly controllerPort: number }>();
  for (const id of ids) places.set(id, { port: await findFreePort(), controllerPort: await findFreePort() });
  const voters = [...places].map(([id, { controllerPort }]) => `${id}@${LOOPBACK}:${controllerPort}`).join(',');

  const processes: JavaBroker[] = [];
  const prepare = async (id: number): Promise<KafkaBroker> => {
    const { port, controllerPort } = places.get(id)!;
    const own = path.join(folder, String(id));
    mkdirSync(own);
    const address = `${LOOPBACK}:${port}`;
    const broker = await prepareJavaBroker({
      ...{ jars, folder: own, clusterId: CLUSTER_ID, isStandalone: false },
      properties: {
        'process.roles': 'broker,controller',
        'node.id': String(id),
        listeners: `PLAINTEXT://${address},CONTROLLER://${LOOPBACK}:${controllerPort}`,
        'advertised.listeners': `PLAINTEXT://${address}`,
        'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
        'inter.broker.listener.name': 'PLAINTEXT',
        'controller.listener.names': 'CONTROLLER',
        'controller.quorum.voters': voters,
        'log.dirs': path.join(own, 'data'),
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
