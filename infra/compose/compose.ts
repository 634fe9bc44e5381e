/** Docker compose of this project, by the plugin (v2) or by docker-compose (1.29). */
import { fileURLToPath } from 'node:url';
import type { CommandResult } from '../docker/docker-command.ts';
import { runQuietly } from '../docker/docker-command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROBE_MS = 20_000;

export interface Compose {
  /** What answers: `docker compose` or `docker-compose`. */
  readonly name: string;
  /** Rejects with what it wrote if its exit code is not 0. */
  run(args: readonly string[], deadlineMs: number): Promise<CommandResult>;
}

/** Throws if neither is there. */
export async function findCompose(project: string, environment: Readonly<Record<string, string>>): Promise<Compose> {
  const plugin = await runQuietly('docker', ['compose', 'version'], { environment, deadlineMs: PROBE_MS });
  const command = plugin.code === 0 ? ['docker', 'compose'] : ['docker-compose'];
  if (plugin.code !== 0) {
    const old = await runQuietly('docker-compose', ['version'], { environment, deadlineMs: PROBE_MS });
    if (old.code !== 0)
      throw new Error(
        'neither `docker compose` nor docker-compose is there; install the compose plugin, or docker-compose',
      );
  }
  const [file = '', ...first] = command;
  // docker-compose 1.29 asks for the classic builder; the plugin does not know the variable.
  const builder = plugin.code === 0 ? {} : { DOCKER_BUILDKIT: '0', COMPOSE_DOCKER_CLI_BUILD: '0' };
  return {
    name: command.join(' '),
    async run(args, deadlineMs) {
      const all = [...first, '-p', project, ...args];
      const options = { environment: { ...environment, ...builder }, deadlineMs, cwd: ROOT };
      const result = await runQuietly(file, all, options);
      if (result.code === 0) return result;
      throw new Error(`${file} ${all.join(' ')} ended with ${result.code}: ${result.errors.slice(-3000)}`);
    },
  };
}
