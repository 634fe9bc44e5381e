/** One Kafka broker with its own controller (KRaft) as a child process, with the means to kill, pause and restart it. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SINGLE_BROKER } from './cluster-port.ts';
import { findFreePort, LOOPBACK } from '../free-port.ts';
import { prepareJavaBroker } from './java-broker.ts';
import type { JavaBroker } from './java-broker.ts';
import { findKafkaJars, KAFKA_VERSION } from './kafka-jars.ts';

export interface LocalKafkaOptions {
  /** Kept over stops. Default: a scratch folder, removed by `stop`. */
  readonly dataDir?: string;
  /** Of `server.properties`, over those for tests. */
  readonly overrides?: Readonly<Record<string, string>>;
  /** Listeners beside the plain one: name → security protocol (`SASL_PLAINTEXT`, `SSL` …); set them up by `overrides`. */
  readonly listeners?: Readonly<Record<string, string>>;
  /** Default: `KAFKA_VERSION` of the environment, else 4.4.0. */
  readonly version?: string;
  /** Default: any free one, kept over restarts. */
  readonly port?: number;
  /** Default 400 MB. */
  readonly heapMb?: number;
  /** Default 90 s. */
  readonly readyMs?: number;
}

export interface LocalKafka {
  /** `host:port`. */
  readonly brokers: readonly string[];
  /** Of a listener beside the plain one. */
  listener(name: string): readonly string[];
  /** Where the jars are: Kafka's tools run with this class path. */
  readonly jars: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** The process stands still; its sockets stay open. */
  pause(): void;
  resume(): void;
  /** Orderly; removes a scratch folder. Idempotent. */
  stop(): Promise<void>;
  /** Orderly if it runs; then the same data at the same address. */
  restart(): Promise<void>;
  /** What the broker wrote last. */
  output(): string;
}

/** Needs Java 17. Rejects with what the broker wrote when it is not ready in time. */
export async function startLocalKafka(options: LocalKafkaOptions = {}): Promise<LocalKafka> {
  const version = options.version ?? KAFKA_VERSION;
  const jars = await findKafkaJars(version);
  const isScratch = options.dataDir === undefined;
  const folder = options.dataDir ?? mkdtempSync(path.join(tmpdir(), 'throughline-kafka-'));
  mkdirSync(folder, { recursive: true });
  const port = options.port ?? (await findFreePort());
  const controllerPort = await findFreePort();
  const extra = new Map<string, { readonly protocol: string; readonly port: number }>();
  for (const [name, protocol] of Object.entries(options.listeners ?? {}))
    extra.set(name, { protocol, port: await findFreePort() });
  const removeScratch = (): void => {
    if (isScratch) rmSync(folder, { recursive: true, force: true });
  };

  let broker: JavaBroker | undefined;
  try {
    // Before Kafka 3.9 the voters stand in the properties.
    const hasNamedVoters = /^3\.[0-8]\./.test(version);
    broker = await prepareJavaBroker({
      ...{ jars, folder, isStandalone: !hasNamedVoters },
      properties: {
        ...makeProperties(path.join(folder, 'data'), port, controllerPort, extra, options.overrides ?? {}),
        ...(hasNamedVoters ? { 'controller.quorum.voters': `1@${LOOPBACK}:${controllerPort}` } : {}),
      },
      heapMb: options.heapMb ?? 400,
      readyMs: options.readyMs ?? 90_000,
    });
    await broker.start();
  } catch (error) {
    broker?.forget();
    removeScratch();
    throw error;
  }
  const { end, start, signal, output, forget } = broker;
  return {
    brokers: [`${LOOPBACK}:${port}`],
    listener(name) {
      const found = extra.get(name);
      if (found === undefined) throw new RangeError(`no listener ${name}`);
      return [`${LOOPBACK}:${found.port}`];
    },
    jars,
    kill: () => end('SIGKILL'),
    pause() {
      signal('SIGSTOP');
    },
    resume() {
      signal('SIGCONT');
    },
    async stop() {
      await end('SIGTERM');
      forget();
      removeScratch();
    },
    async restart() {
      await end('SIGTERM');
      await start();
    },
    output,
  };
}

function makeProperties(
  data: string,
  port: number,
  controllerPort: number,
  extra: ReadonlyMap<string, { readonly protocol: string; readonly port: number }>,
  overrides: Readonly<Record<string, string>>,
): Record<string, string> {
  const own = [...extra].map(([name, { port: at }]) => `${name}://${LOOPBACK}:${at}`);
  const public_ = [`PLAINTEXT://${LOOPBACK}:${port}`, ...own].join(',');
  const protocols = [...extra].map(([name, { protocol }]) => `${name}:${protocol}`);
  return {
    'process.roles': 'broker,controller',
    'node.id': '1',
    listeners: `${public_},CONTROLLER://${LOOPBACK}:${controllerPort}`,
    'advertised.listeners': public_,
    'listener.security.protocol.map': ['PLAINTEXT:PLAINTEXT', 'CONTROLLER:PLAINTEXT', ...protocols].join(','),
    'inter.broker.listener.name': 'PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.bootstrap.servers': `${LOOPBACK}:${controllerPort}`,
    'log.dirs': data,
    ...SINGLE_BROKER,
    ...overrides,
  };
}
