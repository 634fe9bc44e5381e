/** The images that tests and compose need: what they are called, and how each is built where no registry can be reached. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findKafkaJars, KAFKA_VERSION } from '@throughline/testkit/kafka';
import { nodeBinary } from '../install.mjs';
import { runQuietly } from './docker-command.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = path.resolve(HERE, '../..');
const PULL_MS = 5 * 60_000;
const BUILD_MS = 10 * 60_000;
const INSPECT_MS = 30_000;

interface Image {
  /** Names it to compose and to tests. */
  readonly variable: 'KAFKA_IMAGE' | 'NODE_IMAGE' | 'HAPROXY_IMAGE';
  /** In a registry. */
  readonly official: string;
  /** Of what is built here. Kafka's keeps its name, since it is the same program with the same contract. */
  readonly local: string;
  /** The command that builds it. */
  build(): Promise<readonly string[]>;
}

export const IMAGES: readonly Image[] = [
  {
    variable: 'KAFKA_IMAGE',
    official: `apache/kafka:${KAFKA_VERSION}`,
    local: `apache/kafka:${KAFKA_VERSION}`,
    build: async () => [
      path.join(HERE, 'kafka-image/build.sh'),
      `apache/kafka:${KAFKA_VERSION}`,
      await findKafkaJars(KAFKA_VERSION),
    ],
  },
  {
    variable: 'NODE_IMAGE',
    official: 'node:24-slim',
    local: 'throughline/node:24-local',
    build: async () => [path.join(HERE, 'node-image/build.sh'), 'throughline/node:24-local', nodeBinary(ROOT)],
  },
  {
    variable: 'HAPROXY_IMAGE',
    official: 'haproxy:3.2-alpine',
    local: 'throughline/haproxy:local',
    build: async () => [path.join(HERE, 'haproxy-image/build.sh'), 'throughline/haproxy:local'],
  },
];

export type ImageVariable = Image['variable'];
export type ImageNames = Readonly<Partial<Record<ImageVariable, string>>>;

/** The name under which the engine has it, or null. */
async function findImage(host: string, image: Image): Promise<string | null> {
  for (const name of new Set([image.official, image.local])) {
    const { code } = await runQuietly('docker', ['image', 'inspect', name], {
      environment: { DOCKER_HOST: host },
      deadlineMs: INSPECT_MS,
    });
    if (code === 0) return name;
  }
  return null;
}

/** What is missing is pulled, else built, which needs root and Debian. Throws with what the last command said. */
export async function ensureImages(
  host: string,
  wanted: readonly ImageVariable[],
  say: (text: string) => void,
): Promise<ImageNames> {
  const names: Partial<Record<ImageVariable, string>> = {};
  for (const image of IMAGES.filter(({ variable }) => wanted.includes(variable)))
    names[image.variable] = (await findImage(host, image)) ?? (await pullOrBuild(host, image, say));
  return names;
}

async function pullOrBuild(host: string, image: Image, say: (text: string) => void): Promise<string> {
  const environment = { DOCKER_HOST: host };
  say(`containers: pulling ${image.official} …`);
  const pulled = await runQuietly('docker', ['pull', '-q', image.official], { environment, deadlineMs: PULL_MS });
  if (pulled.code === 0) return image.official;
  say(`containers: no registry has it for us (${pulled.errors.trim().slice(0, 200)}); building ${image.local} …`);
  const started = performance.now();
  const [file = '', ...args] = await image.build();
  const built = await runQuietly(file, args, { environment, deadlineMs: BUILD_MS });
  if (built.code !== 0)
    throw new Error(`${path.relative(ROOT, file)} ended with code ${built.code}: ${built.errors.slice(-2000)}`);
  say(`containers: built ${image.local} in ${Math.round((performance.now() - started) / 1000)} s`);
  return image.local;
}
