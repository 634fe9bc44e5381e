/** One broker in a container of the apache/kafka image. (`@testcontainers/kafka` serves Confluent's images only.) */
import process from 'node:process';
import { GenericContainer, Wait } from 'testcontainers';
import type { StartedTestContainer } from 'testcontainers';
import type { KafkaBroker } from './cluster-port.ts';
import { partyProperties } from './cluster-port.ts';
import { ownerLabels } from './container-runtime.ts';
import type { Container, ContainerRuntime } from './container-runtime.ts';
import { findFreePort } from '../free-port.ts';
import { KAFKA_VERSION } from './kafka-jars.ts';
import type { PartyListener } from './party-links.ts';

export interface ContainerBrokerOptions {
  /** Of all members, from 1. */
  readonly ids: readonly number[];
  readonly id: number;
  /** Where members reach each other; null for one alone. */
  readonly networkName: string | null;
  readonly properties: Readonly<Record<string, string>>;
  readonly heapMb: number;
  /** Default: none. */
  readonly parties?: readonly PartyListener[];
  /** A folder of this host that takes its data; default: a volume of its own. */
  readonly dataFolder?: string;
}

export interface ContainerBroker extends KafkaBroker {
  readonly containerId: string;
  /** For clients in other containers of its network, and in its own. */
  readonly insideAddress: string;
  isServing(): Promise<boolean>;
  /** Runs a command in its container. */
  exec(command: readonly string[]): Promise<{ readonly exitCode: number; readonly output: string }>;
  /** SIGKILL, then container and data are gone. Idempotent. */
  remove(): Promise<void>;
}

/** Default apache/kafka in the version of this project; `KAFKA_IMAGE` names another one with the same contract. */
export function kafkaImage(): string {
  return process.env['KAFKA_IMAGE'] ?? `apache/kafka:${KAFKA_VERSION}`;
}

const CLUSTER_ID = '4L6g3nShT-eMCtK--X86sw';
const STARTED = /Kafka Server started/;
const START_MS = 120_000;
const STOP_SECONDS = 20;
const POLL_MS = 50;
/** Ports of listeners for parties, inside. */
const FIRST_PARTY = 9100;
const DATA_FOLDER = '/var/lib/kafka/data';
/** Network clients in the JVM remember look-ups: too long for networks that come and go. */
const JVM = '-Dsun.net.inetaddr.ttl=1 -Dsun.net.inetaddr.negative.ttl=0';

export const aliasOf = (id: number): string => `broker-${id}`;

export async function startContainerBroker(
  runtime: ContainerRuntime,
  options: ContainerBrokerOptions,
): Promise<ContainerBroker> {
  const { id, ids, networkName } = options;
  const { host } = runtime.info.containerRuntime;
  // Fixed before it is created: the broker tells it to clients, and a mapped port would change with a restart.
  const port = await findFreePort();
  const inside = networkName === null ? 'localhost' : aliasOf(id);
  const parties = (options.parties ?? []).map((party, index) => ({ ...party, inside: FIRST_PARTY + index }));
  const settings: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': String(id),
    ...partyProperties(
      {
        listeners: 'PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094',
        'advertised.listeners': `PLAINTEXT://${host}:${port},BROKER://${inside}:9093`,
        'listener.security.protocol.map': 'BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      },
      parties.map(({ name, inside: at, advertised }) => ({ name, bind: `:${at}`, advertised })),
    ),
    'inter.broker.listener.name': 'BROKER',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': ids
      .map((other) => `${other}@${networkName === null ? 'localhost' : aliasOf(other)}:9094`)
      .join(','),
    'log.dirs': options.dataFolder === undefined ? DATA_FOLDER : `${DATA_FOLDER}/log`,
    ...options.properties,
  };
  const container = new BrokerContainer(kafkaImage())
    .publish([[9092, port], ...parties.map((party): [number, number] => [party.inside, party.port])], host)
    .withEnvironment({
      CLUSTER_ID,
      KAFKA_OPTS: JVM,
      KAFKA_HEAP_OPTS: `-Xms128m -Xmx${options.heapMb}m`,
      KAFKA_JVM_PERFORMANCE_OPTS: '-XX:+UseSerialGC -XX:TieredStopAtLevel=1',
      ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [environmentName(name), value])),
    })
    .withLabels(ownerLabels())
    .withAutoCleanup(false)
    .withStartupTimeout(START_MS)
    // Faster than to wait for its ports.
    .withWaitStrategy(Wait.forLogMessage(STARTED));
  if (options.dataFolder !== undefined) container.withBindMounts([{ source: options.dataFolder, target: DATA_FOLDER }]);
  if (networkName !== null) container.withNetworkMode(networkName).withNetworkAliases(aliasOf(id));
  const started = await container.start();
  return control(runtime, started, id, `${host}:${port}`, `${inside}:9093`);
}

/** `min.insync.replicas` → `KAFKA_MIN_INSYNC_REPLICAS`, as the image reads them. */
function environmentName(property: string): string {
  return `KAFKA_${property.replaceAll('_', '__').replaceAll('-', '___').replaceAll('.', '_').toUpperCase()}`;
}

class BrokerContainer extends GenericContainer {
  /** On the loopback address only, where the engine is on this host. */
  publish(ports: readonly (readonly [container: number, host: number])[], host: string): this {
    this.withExposedPorts(...ports.map(([container, hostPort]) => ({ container, host: hostPort })));
    if (host === '127.0.0.1' || host === 'localhost')
      this.hostConfig.PortBindings = Object.fromEntries(
        ports.map(([port, hostPort]) => [`${port}/tcp`, [{ HostIp: '127.0.0.1', HostPort: String(hostPort) }]]),
      );
    return this;
  }
}

function control(
  runtime: ContainerRuntime,
  started: StartedTestContainer,
  id: number,
  address: string,
  insideAddress: string,
): ContainerBroker {
  const container = runtime.container.getById(started.getId());
  let isRemoved = false;
  const state = async (): Promise<{ readonly isRunning: boolean; readonly isPaused: boolean }> => {
    const { State } = await container.inspect();
    return { isRunning: State.Running, isPaused: State.Paused };
  };
  const resume = async (): Promise<void> => {
    if ((await state()).isPaused) await container.unpause();
  };
  const stop = async (): Promise<void> => {
    await resume();
    if ((await state()).isRunning) await container.stop({ t: STOP_SECONDS });
  };
  const start = async (): Promise<void> => {
    if ((await state()).isRunning) return;
    await container.start();
    await waitUntilStarted(container);
  };
  return {
    id,
    address,
    insideAddress,
    containerId: started.getId(),
    isRunning: async () => (await state()).isRunning,
    async kill() {
      if (!(await state()).isRunning) return;
      await container.kill({ signal: 'SIGKILL' });
      await container.wait();
    },
    stop,
    start,
    async restart() {
      await stop();
      await start();
    },
    pause: () => container.pause(),
    resume,
    async isServing() {
      const { isRunning, isPaused } = await state();
      return isRunning && !isPaused;
    },
    exec: (command) => started.exec([...command]),
    output: () => readOutput(container, { tail: 200 }),
    async remove() {
      if (isRemoved) return;
      isRemoved = true;
      await container.remove({ force: true, v: true });
    },
  };
}

async function waitUntilStarted(container: Container): Promise<void> {
  const since = Date.parse((await container.inspect()).State.StartedAt) / 1000;
  for (const until = performance.now() + START_MS; performance.now() < until;) {
    if (STARTED.test(await readOutput(container, { since }))) return;
    if (!(await container.inspect()).State.Running) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`Kafka is not ready in time:\n${await readOutput(container, { tail: 50 })}`);
}

async function readOutput(container: Container, range: { tail?: number; since?: number }): Promise<string> {
  const raw = await container.logs({ stdout: true, stderr: true, ...range });
  return raw.toString();
}
