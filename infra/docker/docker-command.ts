/** The docker client, on a given engine. */
import { spawn } from 'node:child_process';
import process from 'node:process';

export interface CommandResult {
  readonly code: number;
  /** Its stdout. */
  readonly output: string;
  readonly errors: string;
}

/** Resolves whatever the exit code is: 127 if the command does not start, 124 after its deadline. */
export function runQuietly(
  file: string,
  args: readonly string[],
  options: {
    readonly environment?: Readonly<Record<string, string>>;
    readonly deadlineMs: number;
    readonly cwd?: string;
  },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.environment },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const said = { output: '', errors: '' };
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, options.deadlineMs);
    child.stdout.on('data', (chunk: Buffer) => (said.output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (said.errors += chunk.toString()));
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ code: 127, output: '', errors: error.message });
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code: timedOut ? 124 : (code ?? 1), ...said });
    });
  });
}
