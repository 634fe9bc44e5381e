import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { createModuleHost } from '../module-host.ts';
import { openDriver } from '../testing/host-driver.ts';
import { serveOverSdkHttp } from '../testing/sdk-http-server.ts';
import { createDemoServer } from './demo-server.ts';

const run = promisify(execFile);
const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';

describe('the demo server', () => {
  it('[HOST-DEMO-COUNTDOWN] counts down with one progress notification a step, then says that it is done', async () => {
    const host = createModuleHost(
      { module: '@throughline/worker/demo-server' },
      { logger: silentLogger, clock: systemClock },
    );
    try {
      const driver = await openDriver(host);
      await driver.initialize();
      expect(await driver.call('countdown', { from: 3, intervalMs: 5 }, { progressToken: 'p' })).toBe('done 3');
      const params = driver.received.map(({ message }) => ('method' in message ? message.params : undefined));
      expect(params.filter((one) => one !== undefined)).toEqual([
        { progressToken: 'p', progress: 1, total: 3 },
        { progressToken: 'p', progress: 2, total: 3 },
        { progressToken: 'p', progress: 3, total: 3 },
      ]);
      expect(await driver.call('countdown', { from: 2, intervalMs: 0 })).toBe('done 2');
      expect(driver.received.filter(({ message }) => 'method' in message)).toHaveLength(3);
    } finally {
      await host.close();
    }
  });

  it('[HOST-DEMO-CONFORMANCE] passes every scenario of the official suite behind the official transport', async () => {
    const server = await serveOverSdkHttp({ v2: createDemoServer });
    try {
      const folder = mkdtempSync(join(tmpdir(), 'throughline-conformance-'));
      const { stdout } = await run(process.execPath, [
        SUITE,
        'server',
        '--url',
        server.url,
        '--suite',
        'all',
        '-o',
        folder,
      ]);
      expect(stdout).toMatch(/Total: 44 passed, 0 failed/);
    } finally {
      await server.close();
    }
  }, 30_000);
});
