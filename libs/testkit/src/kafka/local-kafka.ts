/** One Kafka broker with its own controller (KRaft) as a child process, with the means to kill, pause and restart it. */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
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

const STARTED = 'Kafka Server started';
const STOP_MS = 20_000;
const HOST = '127.0.0.1';
const run = promisify(execFile);

/** Needs Java 17. Rejects with what the broker wrote when it is not ready in time. */
export async function startLocalKafka(options: LocalKafkaOptions = {}): Promise<LocalKafka> {
  const version = options.version ?? KAFKA_VERSION;
  const jars = await findKafkaJars(version);
  // Before Kafka 3.9 the members of the quorum stand in the settings.
  const hasFixedQuorum = /^3\.[0-8]\./.test(version);
  const isScratch = options.dataDir === undefined;
  const folder = options.dataDir ?? mkdtempSync(path.join(tmpdir(), 'throughline-kafka-'));
  mkdirSync(folder, { recursive: true });
  const port = options.port ?? (await findFreePort());
  const controllerPort = await findFreePort();
  const extra = new Map<string, { readonly protocol: string; readonly port: number }>();
  for (const [name, protocol] of Object.entries(options.listeners ?? {}))
    extra.set(name, { protocol, port: await findFreePort() });
  const data = path.join(folder, 'data');
  const file = path.join(folder, 'server.properties');
  writeFileSync(
    file,
    render({
      ...makeProperties(data, port, controllerPort, extra, options.overrides ?? {}),
      ...(hasFixedQuorum ? { 'controller.quorum.voters': `1@${HOST}:${controllerPort}` } : {}),
    }),
  );
  // First, since Kafka 3.9 brings another logger, which says nothing without a configuration.
  const classPath = [path.join(jars, 'slf4j-simple-1.7.36.jar'), path.join(jars, '*')].join(path.delimiter);
  if (!existsSync(path.join(data, 'meta.properties'))) {
    const { stdout } = await run('java', javaArgs(128, classPath, ['kafka.tools.StorageTool', 'random-uuid']));
    const format = [
      ...['kafka.tools.StorageTool', 'format', ...(hasFixedQuorum ? [] : ['--standalone'])],
      ...['-t', stdout.trim(), '-c', file],
    ];
    await run('java', javaArgs(128, classPath, format));
  }

  let child: ChildProcess | null = null;
  let output = '';
  const killAtExit = (): void => {
    child?.kill('SIGKILL');
  };
  process.on('exit', killAtExit);

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      output = '';
      const started = spawn('java', javaArgs(options.heapMb ?? 400, classPath, ['kafka.Kafka', file]), {
        // A group of its own: Ctrl-C in a terminal is for whoever started it, who then stops it in order.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child = started;
      const timer = setTimeout(() => {
        started.kill('SIGKILL');
        reject(new Error(`Kafka is not ready in time:\n${output}`));
      }, options.readyMs ?? 90_000);
      const onData = (chunk: Buffer): void => {
        output = (output + chunk.toString()).slice(-20_000);
        if (!output.includes(STARTED)) return;
        clearTimeout(timer);
        resolve();
      };
      started.stdout.on('data', onData);
      started.stderr.on('data', onData);
      started.on('error', (error) => {
        clearTimeout(timer);
        reject(new Error(`java does not start: ${error.message}`));
      });
      started.on('exit', (code, signal) => {
        if (child === started) child = null;
        clearTimeout(timer);
        reject(new Error(`Kafka ended (${code ?? signal}):\n${output}`));
      });
    });

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = child;
    if (ending === null) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        ending.kill('SIGKILL');
      }, STOP_MS);
      ending.on('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      ending.kill(signal);
      // A paused process takes no other signal.
      ending.kill('SIGCONT');
    });
  };

  try {
    await start();
  } catch (error) {
    process.off('exit', killAtExit);
    if (isScratch) rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    brokers: [`${HOST}:${port}`],
    listener(name) {
      const found = extra.get(name);
      if (found === undefined) throw new RangeError(`no listener ${name}`);
      return [`${HOST}:${found.port}`];
    },
    jars,
    kill: () => end('SIGKILL'),
    pause() {
      child?.kill('SIGSTOP');
    },
    resume() {
      child?.kill('SIGCONT');
    },
    async stop() {
      await end('SIGTERM');
      process.off('exit', killAtExit);
      if (isScratch) rmSync(folder, { recursive: true, force: true });
    },
    async restart() {
      await end('SIGTERM');
      await start();
    },
    output: () => output,
  };
}

/** Small and quick to start; the broker's own log shows warnings, and that it has started. */
function javaArgs(heapMb: number, classPath: string, command: readonly string[]): string[] {
  return [
    `-Xmx${heapMb}m`,
    ...['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData'],
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
    ...['-cp', classPath],
    ...command,
  ];
}

function makeProperties(
  data: string,
  port: number,
  controllerPort: number,
  extra: ReadonlyMap<string, { readonly protocol: string; readonly port: number }>,
  overrides: Readonly<Record<string, string>>,
): Record<string, string> {
  const own = [...extra].map(([name, { port: at }]) => `${name}://${HOST}:${at}`);
  const public_ = [`PLAINTEXT://${HOST}:${port}`, ...own].join(',');
  const protocols = [...extra].map(([name, { protocol }]) => `${name}:${protocol}`);
  return {
    'process.roles': 'broker,controller',
    'node.id': '1',
    listeners: `${public_},CONTROLLER://${HOST}:${controllerPort}`,
    'advertised.listeners': public_,
    'listener.security.protocol.map': ['PLAINTEXT:PLAINTEXT', 'CONTROLLER:PLAINTEXT', ...protocols].join(','),
    'inter.broker.listener.name': 'PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.bootstrap.servers': `${HOST}:${controllerPort}`,
    'log.dirs': data,
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '3',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '3',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'auto.create.topics.enable': 'false',
    ...overrides,
  };
}

function render(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`)
    .join('');
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, HOST, resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
