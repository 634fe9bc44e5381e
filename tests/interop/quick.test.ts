/**
 * What `npm run interop` does in seconds, for every change: the official TypeScript clients, and each other client that is
 * in the cache of a former run. Nothing is fetched. Kills and planned stops take the deep lane (interop.test.ts); those of
 * the TypeScript clients are in tests/e2e/proxies.test.ts.
 */
import process from 'node:process';
import { makeFilePlace } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from 'vitest';
import { findProxy } from '../../infra/proxies/find-proxy.ts';
import { CLIENTS } from './clients/index.ts';
import type { InteropClient } from './interop-client.ts';
import { startInteropWorld } from './interop-world.ts';
import type { InteropWorld } from './interop-world.ts';
import type { Seen, Step } from './judge.ts';
import { runStep } from './scenario.ts';
import { startTrial } from './trial.ts';
import type { Trial } from './trial.ts';

const START_MS = 120_000;
const STEP_MS = 120_000;

/** There interop.test.ts does all of it, with all of them. */
const isDeep = process.env['DEEP'] === '1';
const haproxy = await findProxy('haproxy', { mayFetch: false });
const found = await Promise.all(CLIENTS.map((source) => source.prepare({ mayFetch: false })));
const clients = found.filter((each): each is InteropClient => !('skipped' in each));

for (const each of found)
  if ('skipped' in each) it.skip(`${each.name}: ${each.skipped}; npm run interop fetches it`, () => undefined);
if ('missing' in haproxy) it.skip(`a load balancer: ${haproxy.missing}`, () => undefined);

describe.skipIf(isDeep || 'missing' in haproxy)('behind HAProxy without stickiness, on the embedded log', () => {
  const resources = new AsyncDisposableStack();
  const trials: Trial[] = [];
  let world: InteropWorld;
  beforeAll(async () => {
    if (isDeep || 'missing' in haproxy) return;
    world = resources.use(await startInteropWorld(makeFilePlace, haproxy));
    for (const client of clients) trials.push(resources.use(await startTrial(client, world.url)));
  }, START_MS);
  afterAll(() => resources.disposeAsync(), START_MS);

  it('[INTEROP-QUICK] the official TypeScript clients are always among those that are tried', () => {
    expect(clients.map(({ name }) => name)).toEqual(expect.arrayContaining(['TypeScript v1', 'TypeScript v2']));
  });

  it.each<[does: string, step: Step]>([
    ['connects', 'initialize'],
    ['calls a tool, with each step once and in order', 'call'],
    ['fails a call whose cursor cannot be continued', 'refusal'],
    ['notices that its session is gone, and can begin another', '404'],
  ])(
    '[INTEROP-QUICK] each client %s',
    async (_, step) => {
      onTestFailed(() => void process.stderr.write(world.logs().slice(-8000)));
      const seen = await runStep(step, trials, world);
      const wrong = seen.map((each, place): [string, Seen] => [clients[place]!.name, each]);
      expect(wrong.filter(([, { isRight }]) => !isRight)).toEqual([]);
    },
    STEP_MS,
  );
});
