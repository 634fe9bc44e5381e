import { makeScratchFolder, startCluster, startThroughline } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTally, runSuite } from './run-suite.ts';

/** Checks of `--suite active` in 0.1.16: a run that made fewer did not run it all. */
const ACTIVE_CHECKS = 40;
const POLLING_CHECKS = 3;

const resources = new AsyncDisposableStack();
const endpoints = new Map<string, string>();
let folder = '';

beforeAll(async () => {
  folder = resources.use(makeScratchFolder()).path;
  const [one, cluster] = await Promise.all([
    startThroughline('serve', { folder, args: ['--log', 'sqlite:log.db'] }),
    startCluster({ gateways: 1 }),
  ]);
  resources.use(one);
  resources.use(cluster);
  endpoints.set('serve', one.url);
  endpoints.set('gateway and two workers', cluster.urls()[0] ?? '');
}, 90_000);
afterAll(() => resources.disposeAsync(), 60_000);

describe.each(['serve', 'gateway and two workers'])('the official conformance suite against %s', (where) => {
  it('[E2E-CONFORMANCE] passes all its active scenarios', async () => {
    const { code, text } = await runSuite(['server', '--url', endpoints.get(where) ?? '', '--suite', 'active'], folder);
    const { passed, failed } = /^Total: (?<passed>\d+) passed, (?<failed>\d+) failed$/m.exec(text)?.groups ?? {};
    expect(text.match(/^✗.*$/gm) ?? []).toEqual([]);
    expect({ code, failed, passed }).toEqual({ code: 0, failed: '0', passed: String(ACTIVE_CHECKS) });
  }, 150_000);

  it('[E2E-CONFORMANCE] passes server-sse-polling without a warning', async () => {
    const { code, text } = await runSuite(
      ['server', '--url', endpoints.get(where) ?? '', '--scenario', 'server-sse-polling'],
      folder,
    );
    const { passed, of, failed, warnings } = readTally(text);
    expect({ code, passed, of, failed, warnings }, text).toEqual({
      code: 0,
      passed: String(POLLING_CHECKS),
      of: String(POLLING_CHECKS),
      failed: '0',
      warnings: '0',
    });
    expect(text).not.toContain('WARNING');
  }, 150_000);
});
