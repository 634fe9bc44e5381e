import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeScratchFolder, startBalancer, startCluster, startThroughline } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { isKafka, it, makeLog } from '../e2e/log-under-test.ts';
import { readChecks, runSuite } from './run-suite.ts';
import type { SuiteLine } from './run-suite.ts';

const EXPECTED_FAILURES = fileURLToPath(new URL('expected-failures.yml', import.meta.url));
const TWO_GATEWAYS = 'two gateways in turn';
const PLACES = isKafka ? [TWO_GATEWAYS] : ['serve', TWO_GATEWAYS];

interface Run {
  readonly line: SuiteLine;
  readonly selection: readonly string[];
  /** How many checks succeed: a run that made fewer did not run it all. */
  readonly checks: number;
}

const RUNS: readonly Run[] = [
  { line: '0.1', selection: ['--suite', 'all'], checks: 47 },
  { line: '0.2', selection: ['--requirements', '2025-11-25'], checks: 84 },
];

const resources = new AsyncDisposableStack();
const endpoints = new Map<string, string>();
let served: ReadonlyMap<string, number> = new Map();

beforeAll(async () => {
  const serve = async (): Promise<void> => {
    const folder = resources.use(makeScratchFolder()).path;
    endpoints.set('serve', resources.use(await startThroughline('serve', { folder })).url);
  };
  const cluster = async (): Promise<void> => {
    const { gateways } = resources.use(await startCluster({ log: makeLog }));
    const balancer = resources.use(await startBalancer(() => gateways));
    endpoints.set(TWO_GATEWAYS, balancer.url);
    served = balancer.served;
  };
  await Promise.all(isKafka ? [cluster()] : [serve(), cluster()]);
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

describe.each(PLACES)('the official conformance suite against %s', (place) => {
  it.each(RUNS)(
    '[E2E-CONFORMANCE] passes all of $line $selection without a failure or a warning',
    async ({ line, selection, checks }) => {
      using folder = makeScratchFolder();
      const url = endpoints.get(place) ?? '';
      const args = ['server', '--url', url, ...selection, '--expected-failures', EXPECTED_FAILURES];
      const { code, text } = await runSuite(args, folder.path, line);
      const made = readChecks(folder.path);
      expect(made.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO')).toEqual([]);
      expect({ code, checks: made.filter(({ status }) => status === 'SUCCESS').length }, text).toEqual({
        code: 0,
        checks,
      });
    },
    330_000,
  );
});

it('[E2E-CONFORMANCE] what ran through two gateways was answered by both', () => {
  expect([...served.values()].filter((count) => count > 50)).toHaveLength(2);
});

it('[E2E-CONFORMANCE] no failure is expected', () => {
  const lines = readFileSync(EXPECTED_FAILURES, 'utf8').split('\n');
  expect(lines.filter((line) => line !== '' && !line.startsWith('#'))).toEqual(['server: []']);
});
