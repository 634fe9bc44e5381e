/** The Docker engine of this machine, or a private one. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findDocker } from '@throughline/testkit/kafka';
import { runQuietly } from './docker-command.ts';

const SCRIPT = path.join(fileURLToPath(new URL('.', import.meta.url)), 'engine.sh');
const START_MS = 5 * 60_000;
const STOP_MS = 60_000;

export interface Engine {
  /** For `DOCKER_HOST`. */
  readonly host: string;
  /** It was started by this call; whoever asked for it may stop it. */
  readonly isOurs: boolean;
}

/** The engine that answers, else a private one is started: as root, on Debian. Throws with what the script said. */
export async function ensureEngine(say: (text: string) => void): Promise<Engine> {
  const host = await findDocker();
  if (host !== null) return { host, isOurs: false };
  say('containers: no Docker engine answers; starting a private one …');
  const { code, output, errors } = await runQuietly(SCRIPT, ['start'], { deadlineMs: START_MS });
  if (code !== 0) throw new Error(`no Docker engine answers, and a private one does not start: ${errors.slice(-2000)}`);
  return { host: output.trim().split('\n').at(-1) ?? '', isOurs: true };
}

/** Stops the private engine unless a container runs in it: others may use it. */
export async function stopIdleEngine({ host }: Engine): Promise<void> {
  const { code, output } = await runQuietly('docker', ['ps', '-q'], {
    environment: { DOCKER_HOST: host },
    deadlineMs: STOP_MS,
  });
  if (code === 0 && output.trim() === '') await stopPrivateEngine();
}

/** Stops the private engine with its containers; its images stay. No effect if it does not run. */
export async function stopPrivateEngine(): Promise<void> {
  await runQuietly(SCRIPT, ['stop'], { deadlineMs: STOP_MS });
}
