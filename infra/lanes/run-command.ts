/** One command of a lane: live output, a deadline, and nothing left behind when the lane is interrupted. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const KILL_AFTER_MS = 5000;

export interface CommandOptions {
  readonly deadlineMs: number;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Resolves with the exit code; 124 after the deadline, 127 if it did not start. Runs in the root of the project. */
export function runCommand(command: readonly string[], options: CommandOptions): Promise<number> {
  const [file = '', ...args] = command;
  return new Promise((resolve) => {
    // A group of its own, so that a deadline ends grandchildren (test workers, servers under test) as well.
    const child = spawn(file, args, {
      cwd: ROOT,
      stdio: 'inherit',
      detached: true,
      env: { ...process.env, ...options.environment },
    });
    let timedOut = false;
    let kill: NodeJS.Timeout | undefined;
    const signalGroup = (signal: NodeJS.Signals): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, signal);
      } catch {
        // The group has gone already.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      signalGroup('SIGTERM');
      kill = setTimeout(() => {
        signalGroup('SIGKILL');
      }, KILL_AFTER_MS);
    }, options.deadlineMs);
    const interrupt = (signal: NodeJS.Signals): void => {
      signalGroup(signal);
      process.exit(signal === 'SIGINT' ? 130 : 143);
    };
    const finish = (code: number): void => {
      clearTimeout(timer);
      clearTimeout(kill);
      process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
      // Whatever it left running would disturb the next part.
      signalGroup('SIGKILL');
      resolve(code);
    };
    process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
    child.on('error', (error) => {
      process.stderr.write(`${file} does not start: ${error.message}\n`);
      finish(127);
    });
    child.on('exit', (code) => {
      finish(timedOut ? 124 : (code ?? 1));
    });
  });
}
