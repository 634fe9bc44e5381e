/** `throughline connect` as a client starts it: lines in, lines out, what it tells, and how it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { waitUntil, within } from '@throughline/testkit/processes';
import { onTestFinished } from 'vitest';
import type { HeardMessage } from '../../services/cli/src/connect/testing/connect-in-process.ts';
import { COMMAND, commandLine } from './connect-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

export interface BridgeProcess {
  readonly pid: number;
  /** What has come so far. */
  readonly messages: readonly HeardMessage[];
  stdout(): string;
  stderr(): string;
  /** A line of stdin. */
  type(message: object | string): void;
  closeStdin(): void;
  kill(signal?: NodeJS.Signals): void;
  /** `initialize`, its answer, and that it was taken. */
  initialize(clientName?: string): Promise<HeardMessage>;
  call(id: number, name: string, args?: object): void;
  answer(id: string | number): Promise<HeardMessage>;
  /** The exit code. */
  ended(): Promise<number | null>;
}

const LONG_MS = 60_000;

export interface BridgeProcessOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Killed when the test is over; what it told is shown if the test fails. */
export function startBridge(url: string, args: readonly string[], options: BridgeProcessOptions): BridgeProcess {
  const bridge = spawnBridge(url, args, options);
  showLogsOnFailure({ logs: () => `— bridge\n${bridge.stderr()}` });
  onTestFinished(() => {
    bridge.kill();
  });
  return bridge;
}

/** Whoever starts it ends it. */
export function spawnBridge(
  url: string,
  args: readonly string[],
  { cwd, env = {} }: BridgeProcessOptions,
): BridgeProcess {
  const child = spawn(COMMAND, commandLine(url, args), { cwd, stdio: 'pipe', env: { ...process.env, ...env } });
  const messages: HeardMessage[] = [];
  let stdout = '';
  let rest = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
    const lines = `${rest}${data.toString()}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) messages.push(JSON.parse(line) as HeardMessage);
  });
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close') as Promise<[number | null]>;
  const type = (message: object | string): void => {
    child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  };
  const answer = (id: string | number): Promise<HeardMessage> =>
    waitUntil(
      `the answer to ${id}`,
      () => messages.find((message) => message.id === id && message.method === undefined),
      LONG_MS,
    );
  return {
    pid: child.pid ?? 0,
    messages,
    stdout: () => stdout,
    stderr: () => stderr,
    type,
    closeStdin: () => child.stdin.end(),
    kill: (signal = 'SIGKILL') => void child.kill(signal),
    async initialize(name = 'raw') {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } };
      type({ id: 'init', method: 'initialize', params });
      const answered = await answer('init');
      type({ method: 'notifications/initialized' });
      return answered;
    },
    call(id, name, args = {}) {
      type({ id, method: 'tools/call', params: { name, arguments: args, _meta: { progressToken: `of ${id}` } } });
    },
    answer,
    ended: async () => (await within('the end of the bridge', closed, LONG_MS))[0],
  };
}
