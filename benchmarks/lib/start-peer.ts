/** A peer of this folder as a process of its own: its address is the first line that it prints. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Peer extends AsyncDisposable {
  readonly pid: number;
  /** What it printed first. */
  readonly line: string;
}

const READY_MS = 30_000;

/** `name` is a file of `benchmarks/peers` without `.ts`. */
export async function startPeer(
  name: string,
  args: readonly string[] = [],
  nodeArgs: readonly string[] = [],
): Promise<Peer> {
  const file = fileURLToPath(new URL(`../peers/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ['--conditions=@throughline/source', ...nodeArgs, file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  const onExit = (): void => {
    child.kill('SIGKILL');
  };
  process.on('exit', onExit);
  const lines = createInterface(child.stdout);
  const [line] = (await Promise.race([
    once(lines, 'line', { signal: AbortSignal.timeout(READY_MS) }),
    gone.then(() => Promise.reject(new Error(`${name} ended before it was ready`))),
  ])) as [string];
  return {
    pid: child.pid ?? 0,
    line,
    async [Symbol.asyncDispose]() {
      process.off('exit', onExit);
      child.kill('SIGKILL');
      await gone;
    },
  };
}
