/** Containers of a lane: only where `REQUIRE_CONTAINERS=1` asks for them is an engine started and an image built. */
import process from 'node:process';
import { errorText } from '@throughline/log';
import { ensureEngine, stopIdleEngine } from '../docker/engine.ts';
import type { Engine } from '../docker/engine.ts';
import { ensureImages } from '../docker/images.ts';
import type { ImageVariable } from '../docker/images.ts';
import type { PartResult } from './tally.ts';

export interface LaneContainers {
  /** One test: engine and images are there. None where nobody asks for them. */
  readonly results: readonly PartResult[];
  /** For the parts. */
  readonly environment: Readonly<Record<string, string>>;
  /** Stops the engine if this call started it and nobody else uses it. */
  stop(): Promise<void>;
}

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Never rejects: a lane shows everything that is wrong. */
export async function prepareContainers(images: readonly ImageVariable[]): Promise<LaneContainers> {
  const none = { results: [], environment: {}, stop: () => Promise.resolve() };
  if (process.env['REQUIRE_CONTAINERS'] !== '1') return none;
  say('\n=== containers');
  const started = performance.now();
  const result = (tally: { passed: number; failed: number; note?: string }): PartResult => ({
    ...{ name: 'containers', ms: performance.now() - started, skipped: 0 },
    ...tally,
  });
  let engine: Engine | undefined;
  const stop = async (): Promise<void> => {
    if (engine?.isOurs === true) await stopIdleEngine(engine);
  };
  try {
    engine = await ensureEngine(say);
    const names = await ensureImages(engine.host, images, say);
    return { results: [result({ passed: 1, failed: 0 })], environment: { DOCKER_HOST: engine.host, ...names }, stop };
  } catch (error) {
    const note = errorText(error);
    say(`containers: ${note}`);
    return { ...none, results: [result({ passed: 0, failed: 1, note: 'no engine or image' })], stop };
  }
}
