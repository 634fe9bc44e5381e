/** The product as its users run it: a process from source, ready when it says so, ended by signals, its logs kept. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from './wait-until.ts';

const MAIN = fileURLToPath(new URL('../../../../services/cli/src/main.ts', import.meta.url));
const READY_MS = 60_000;
const EXIT_MS = 45_000;
const MAX_OUTPUT = 4 * 1024 * 1024;

export type ThroughlineRole = 'serve' | 'gateway' | 'worker';

/** How any program starts a command of the product from source: `command` and `args` for a spawn. */
export function throughlineCommand(...words: readonly string[]): {
  readonly command: string;
  readonly args: string[];
} {
  return { command: process.execPath, args: ['--conditions=@throughline/source', MAIN, ...words] };
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ThroughlineProcess extends AsyncDisposable {
  readonly role: ThroughlineRole;
  readonly pid: number;
  /** The line that said that it is ready. */
  readonly ready: string;
  /** The MCP endpoint; `''` for a worker. */
  readonly url: string;
  /** Address of `/readyz` and `/metrics`; `''` for a worker without `--admin`. */
  readonly adminUrl: string;
  /** Milliseconds from the start of the process to the ready line. */
  readonly startMs: number;
  readonly exited: Promise<Exit>;
  isRunning(): boolean;
  /** What it wrote to stderr: logs, as JSON lines. The newest part if it is much. */
  logs(): string;
  /** SIGSTOP: it stands still, its sockets stay open. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL: it can do nothing any more. Resolves when it is gone. */
  kill(): Promise<Exit>;
  /** SIGTERM: a planned stop. Resolves when it is gone; rejects if it stays. */
  stop(): Promise<Exit>;
}

export interface GatewayPorts {
  readonly mcp: number;
  readonly admin: number;
}

export interface ThroughlineOptions {
  readonly args?: readonly string[];
  /** Of 127.0.0.1. Default: free ones. Not of a worker. */
  readonly ports?: GatewayPorts;
  /** Working directory: where the log and the configuration are found by default. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a role on ports of 127.0.0.1. Rejects with what it wrote if it ends before it is ready. */
export async function startThroughline(
  role: ThroughlineRole,
  { args = [], ports = { mcp: 0, admin: 0 }, folder, env = {} }: ThroughlineOptions,
): Promise<ThroughlineProcess> {
  const startedAt = performance.now();
  const addresses =
    role === 'worker' ? [] : ['--listen', `127.0.0.1:${ports.mcp}`, '--admin', `127.0.0.1:${ports.admin}`];
  const { command, args: words } = throughlineCommand(role, ...addresses, '--json-logs', ...args);
  const child = spawn(command, words, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...withoutOwnVariables(process.env), ...env },
  });
  running.add(child);
  let out = '';
  let logs = '';
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
    child.once('error', () => {
      running.delete(child);
      resolve({ code: 127, signal: null });
    });
  });
  const ready = new Promise<string>((resolve, reject) => {
    // The addresses stand in a log event, which may come after the line on the other pipe.
    const check = (): void => {
      const line = /^Throughline .*is ready: .*$/m.exec(out)?.[0];
      if (line !== undefined && (role === 'worker' || addressesOf(logs) !== null)) resolve(line);
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      check();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      logs = (logs + text).slice(-MAX_OUTPUT);
      check();
    });
    void exited.then(({ code, signal }) => {
      reject(new Error(`${role} ended (${code ?? signal ?? ''}) before it was ready:\n${out}${logs}`));
    });
  });

  const end = async (signal: NodeJS.Signals): Promise<Exit> => {
    child.kill(signal);
    return await within(`${role} ${child.pid ?? ''} to end by ${signal}`, exited, EXIT_MS);
  };
  let line: string;
  try {
    line = await within(`${role} to be ready`, ready, READY_MS);
  } catch (error) {
    await end('SIGKILL');
    throw error;
  }
  const addressesNow = addressesOf(logs);
  const workerAdmin = /"adminUrl":"(?<url>[^"]+)"/.exec(logs)?.groups?.['url'];
  return {
    role,
    pid: child.pid ?? 0,
    ready: line,
    url: addressesNow === null ? '' : `${addressesNow.url}/mcp`,
    adminUrl: addressesNow?.adminUrl ?? workerAdmin ?? '',
    startMs: performance.now() - startedAt,
    exited,
    isRunning: () => running.has(child),
    logs: () => logs,
    pause() {
      child.kill('SIGSTOP');
    },
    resume() {
      child.kill('SIGCONT');
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    async [Symbol.asyncDispose]() {
      await end('SIGKILL');
    },
  };
}

function addressesOf(logs: string): { readonly url: string; readonly adminUrl: string } | null {
  const line = logs.split('\n').find((text) => text.includes('"event":"gateway is listening"'));
  if (line === undefined) return null;
  const { url, adminUrl } = JSON.parse(line) as { url: string; adminUrl: string | null };
  return { url, adminUrl: adminUrl ?? '' };
}

/** Whoever runs the tests may have settings of their own. */
function withoutOwnVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('THROUGHLINE_')));
}
