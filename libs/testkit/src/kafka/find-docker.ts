/** The Docker engine that tests use, if one answers: the one that is named, the usual one, or the private one of infra/docker. */
import { request } from 'node:http';
import path from 'node:path';
import process from 'node:process';

const PING_MS = 5000;
const USUAL = 'unix:///var/run/docker.sock';

/** Where `infra/docker/engine.sh` listens. */
function privateDockerHost(environment: Readonly<Record<string, string | undefined>>): string {
  const root = environment['THROUGHLINE_DOCKER_ROOT'] ?? '/var/lib/throughline/docker';
  return `unix://${path.join(root, 'docker.sock')}`;
}

/**
 * Resolves with what `DOCKER_HOST` must be, or null. A named engine is the only one asked.
 */
export async function findDocker(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  answers: (host: string) => Promise<boolean> = pingDocker,
): Promise<string | null> {
  const named = environment['DOCKER_HOST'] ?? '';
  const candidates = named === '' ? [USUAL, privateDockerHost(environment)] : [named];
  for (const host of candidates) if (await answers(host)) return host;
  return null;
}

/** Whether the engine's API answers within 5 s. TLS and SSH hosts are taken to answer: they need credentials that only clients have. */
function pingDocker(host: string): Promise<boolean> {
  const url = new URL(host);
  const isSocket = url.protocol === 'unix:';
  if (!isSocket && url.protocol !== 'tcp:' && url.protocol !== 'http:') return Promise.resolve(true);
  if (!isSocket && (process.env['DOCKER_TLS_VERIFY'] ?? '') !== '') return Promise.resolve(true);
  const where = isSocket ? { socketPath: url.pathname } : { host: url.hostname, port: url.port };
  return new Promise((resolve) => {
    const asked = request({ ...where, path: '/_ping', timeout: PING_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => {
      resolve(false);
    });
    asked.end();
  });
}
