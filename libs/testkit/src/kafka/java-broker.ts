/** A Kafka broker as a child process: started, stopped, killed, paused. */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { ToolOptions, ToolResult } from './cluster-port.ts';

export interface JavaBrokerOptions {
  readonly jars: string;
  /** For `server.properties`. */
  readonly folder: string;
  readonly properties: Readonly<Record<string, string>>;
  /** Default: a new one. */
  readonly clusterId?: string;
  /** Its controller stands alone (its quorum is found by `controller.quorum.bootstrap.servers`); else voters are named in the properties. */
  readonly isStandalone: boolean;
  readonly heapMb: number;
  readonly readyMs: number;
}

export interface JavaBroker {
  /** Rejects with what the broker wrote when it is not ready in time. No effect while it runs. */
  start(): Promise<void>;
  /** Ends it, paused or not. A stop that takes longer than 20 s becomes a kill. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  output(): string;
  isRunning(): boolean;
  /** After the last `end`. */
  forget(): void;
}

const STARTED = 'Kafka Server started';
const STOP_MS = 20_000;
const TOOL_MS = 60_000;
const TOOLS = new URL('../../../../infra/kafka/tools.txt', import.meta.url);
const run = promisify(execFile);

/** Writes its configuration and formats its storage if that is new. Needs Java 17. */
export async function prepareJavaBroker(options: JavaBrokerOptions): Promise<JavaBroker> {
  const { jars, properties } = options;
  const file = path.join(options.folder, 'server.properties');
  writeFileSync(file, render(properties));
  if (!existsSync(path.join(properties['log.dirs'] ?? '', 'meta.properties'))) {
    const clusterId = options.clusterId ?? (await makeClusterId(jars));
    const format = ['format', '-t', clusterId, '-c', file, ...(options.isStandalone ? ['--standalone'] : [])];
    await run('java', javaArgs(128, jars, ['kafka.tools.StorageTool', ...format]));
  }

  let child: ChildProcess | null = null;
  let output = '';
  const killAtExit = (): void => {
    child?.kill('SIGKILL');
  };
  process.on('exit', killAtExit);

  return {
    async start() {
      if (child !== null) return;
      await new Promise<void>((resolve, reject) => {
        output = '';
        const started = spawn('java', javaArgs(options.heapMb, jars, ['kafka.Kafka', file]), {
          // A group of its own: Ctrl-C in a terminal is for whoever started it, who then stops it in order.
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        child = started;
        const timer = setTimeout(() => {
          started.kill('SIGKILL');
          reject(new Error(`Kafka is not ready in time:\n${output}`));
        }, options.readyMs);
        const onData = (chunk: Buffer): void => {
          output = (output + chunk.toString()).slice(-20_000);
          if (!output.includes(STARTED)) return;
          clearTimeout(timer);
          resolve();
        };
        started.stdout.on('data', onData);
        started.stderr.on('data', onData);
        started.on('error', (error) => {
          if (child === started) child = null;
          clearTimeout(timer);
          reject(new Error(`java does not start: ${error.message}`));
        });
        started.on('exit', (code, signal) => {
          if (child === started) child = null;
          clearTimeout(timer);
          reject(new Error(`Kafka ended (${code ?? signal}):\n${output}`));
        });
      });
    },
    async end(signal) {
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
    },
    signal(signal) {
      child?.kill(signal);
    },
    output: () => output,
    isRunning: () => child !== null,
    forget() {
      process.off('exit', killAtExit);
    },
  };
}

/** Rejects without a `java` on the path. */
export async function findJava(): Promise<void> {
  try {
    await run('java', ['-version']);
  } catch (error) {
    throw new Error('java does not start; Kafka needs version 17 or later', { cause: error });
  }
}

async function makeClusterId(jars: string): Promise<string> {
  const { stdout } = await run('java', javaArgs(128, jars, ['kafka.tools.StorageTool', 'random-uuid']));
  return stdout.trim();
}

/** One of Kafka's scripts by its name, as a process here. See `KafkaCluster.runTool`. */
export function runJavaTool(
  jars: string,
  name: string,
  args: readonly string[],
  { input = '', deadlineMs = TOOL_MS }: ToolOptions = {},
): Promise<ToolResult> {
  const rows = readFileSync(TOOLS, 'utf8').split('\n');
  const main = rows.find((row) => row.startsWith(`${name} `))?.slice(name.length + 1);
  if (main === undefined) throw new RangeError(`infra/kafka/tools.txt has no ${name}`);
  return new Promise((resolve, reject) => {
    const child = spawn('java', javaArgs(256, jars, [main, ...args]), { stdio: 'pipe', timeout: deadlineMs });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code: code ?? 143, output });
    });
    child.stdin.on('error', () => undefined); // it may end without reading all of it
    child.stdin.end(input);
  });
}

/** Small and quick to start; the broker's own log shows warnings, and that it has started. */
function javaArgs(heapMb: number, jars: string, command: readonly string[]): string[] {
  // First, since Kafka 3.9 brings another logger, which says nothing without a configuration.
  const classPath = [path.join(jars, 'slf4j-simple-1.7.36.jar'), path.join(jars, '*')].join(path.delimiter);
  return [
    `-Xmx${heapMb}m`,
    ...['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData'],
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
    ...['-cp', classPath],
    ...command,
  ];
}

function render(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`)
    .join('');
}
