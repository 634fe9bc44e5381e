/**
 * A child process as the leader of a process group of its own, so that a wrapper (`npx`, `sh -c`) ends together with the
 * server that it started. Every group that lives is killed when this process exits; after a `kill -9` of this process the
 * children see the end of their stdin, upon which an MCP server exits.
 */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync } from 'node:fs';
import { sleep } from '@throughline/log';
import type { Clock } from '@throughline/log';
import { HostError } from './host.ts';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildGroup {
  readonly process: ChildProcessWithoutNullStreams;
  /** Resolves when the leader has exited. */
  readonly exited: Promise<ChildExit>;
  hasExited(): boolean;
  /** Closes stdin, then SIGTERM, then SIGKILL to the whole group, each after its time; resolves when the group is gone, or after all three times. */
  stop(limits: StopLimits): Promise<void>;
}

export interface StopLimits {
  /** Milliseconds between the end of stdin and SIGTERM. */
  readonly stdinMs: number;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly termMs: number;
  /** Milliseconds to wait for the end after SIGKILL. */
  readonly killMs: number;
}

export interface ChildCommand {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

const POLL_MS = 10;
const QUIET_MS = 100;
const livingGroups = new Set<number>();

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

function killAllGroups(): void {
  for (const pid of livingGroups) signalGroup(pid, 'SIGKILL');
}

function trackGroup(pid: number): void {
  if (livingGroups.size === 0) process.once('exit', killAllGroups);
  livingGroups.add(pid);
}

function untrackGroup(pid: number): void {
  if (livingGroups.delete(pid) && livingGroups.size === 0) process.removeListener('exit', killAllGroups);
}

function spawnError(command: string, cwd: string | undefined, error: NodeJS.ErrnoException): HostError {
  if (cwd !== undefined && !existsSync(cwd)) {
    return new HostError('HOST_CONFIG', `the working directory ${cwd} of the stdio server does not exist`, error);
  }
  if (error.code === 'ENOENT') {
    const fix = "install it or give its full path; no shell is run, so use sh -c '…' for variables and pipes";
    return new HostError('HOST_CONFIG', `the command "${command}" of the stdio server was not found; ${fix}`, error);
  }
  return new HostError(
    'HOST_CONFIG',
    `the command "${command}" of the stdio server cannot be started (${error.code ?? error.message})`,
    error,
  );
}

/** Starts the command; rejects with `HOST_CONFIG` if the system cannot. */
export async function startChildGroup(command: ChildCommand, clock: Clock): Promise<ChildGroup> {
  const [file = '', ...args] = command.words;
  let child: ChildProcessWithoutNullStreams;
  try {
    child = spawn(file, args, {
      env: command.env,
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    throw spawnError(file, command.cwd, error as NodeJS.ErrnoException);
  }
  let exit: ChildExit | undefined;
  const exited = new Promise<ChildExit>((resolve) => {
    child.once('exit', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => {
      reject(spawnError(file, command.cwd, error));
    });
  });
  // A later 'error' (a signal that cannot be sent) changes nothing here and must not be unhandled.
  child.on('error', () => undefined);
  const pid = child.pid;
  if (pid === undefined) throw new HostError('HOST_CONFIG', `the command "${file}" has no process id`);
  trackGroup(pid);

  const openPipes = new Set([child.stdout, child.stderr]);
  for (const pipe of [...openPipes]) pipe.once('close', () => openPipes.delete(pipe));

  const isGroupGone = (): boolean => exit !== undefined && !signalGroup(pid, 0);
  /**
   * The dead members of a group stay as zombies until the parent they were left to reaps them, which in a container is
   * perhaps never; a group that holds no pipe of ours any more is as good as gone.
   */
  const isQuiet = (): boolean => exit !== undefined && openPipes.size === 0;

  /** Whether `holds` came true within `ms`. */
  const waitFor = async (ms: number, holds: () => boolean): Promise<boolean> => {
    const until = clock.monoMs() + ms;
    while (!holds()) {
      const left = until - clock.monoMs();
      if (left <= 0) return false;
      await sleep(clock, Math.min(POLL_MS, left));
    }
    return true;
  };

  const stop = async (limits: StopLimits): Promise<void> => {
    const isOver = (): boolean => isGroupGone() || isQuiet();
    child.stdin.end();
    if (exit === undefined) await waitFor(limits.stdinMs, isOver);
    if (!isGroupGone()) {
      signalGroup(pid, 'SIGTERM');
      // Members that gave up their pipes may still live; they get a short time.
      if (isQuiet()) await waitFor(Math.min(QUIET_MS, limits.termMs), isGroupGone);
      else await waitFor(limits.termMs, isOver);
    }
    if (!isGroupGone()) {
      signalGroup(pid, 'SIGKILL');
      await waitFor(limits.killMs, isOver);
    }
    if (isOver()) untrackGroup(pid);
  };

  let stopping: Promise<void> | undefined;
  return {
    process: child,
    exited,
    hasExited: () => exit !== undefined,
    stop(limits) {
      stopping ??= stop(limits);
      return stopping;
    },
  };
}
