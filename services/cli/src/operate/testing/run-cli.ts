/** A command of the CLI in this process: what it prints, and its exit code. */
import { tmpdir } from 'node:os';
import process from 'node:process';
import { run } from '../../run.ts';
import { operate } from '../operate.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** Ctrl-C. */
  readonly signal?: AbortSignal;
  readonly cwd?: string;
  /** Told what is printed, as it comes. */
  onOut?(text: string): void;
}

/** `line`: words split at blanks, or the words. */
export async function runCli(line: string | readonly string[], options: CliOptions = {}): Promise<CliResult> {
  let stdout = '';
  let stderr = '';
  const out = (text: string): void => {
    stdout += text;
    options.onOut?.(text);
  };
  const err = (text: string): void => {
    stderr += text;
  };
  const code = await run({
    argv: typeof line === 'string' ? line.split(' ') : line,
    environment: options.environment ?? {},
    cwd: options.cwd ?? tmpdir(),
    version: '0.0.0',
    demoModule: process.execPath,
    out,
    err,
    readStdin: () => Promise.resolve(''),
    operate: (operation, settings) =>
      operate(operation, settings, {
        out,
        err,
        flushed: () => Promise.resolve(),
        isInteractive: false,
        onSignals(onSignal) {
          const stop = (): void => {
            onSignal('SIGINT');
          };
          options.signal?.addEventListener('abort', stop);
          return () => options.signal?.removeEventListener('abort', stop);
        },
      }),
    connect: () => Promise.reject(new Error('no bridge here')),
    runRole: () => Promise.reject(new Error('no roles here')),
  });
  return { code, stdout, stderr };
}
