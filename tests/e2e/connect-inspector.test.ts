/** The Inspector's CLI with `throughline connect` as its server. It is fetched by npx: deep lane only. */
import { execFile } from 'node:child_process';
import process from 'node:process';
import { promisify } from 'node:util';
import { makeScratchFolder, startThroughline } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { COMMAND, commandLine } from './connect-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

const run = promisify(execFile);

/** With which it was seen to work. */
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';

describe.runIf(process.env['DEEP'] === '1')('the Inspector', () => {
  it('[CONNECT-THROUGH] lists the tools and calls one behind throughline connect', async () => {
    using folder = makeScratchFolder();
    await using serve = await startThroughline('serve', { folder: folder.path });
    showLogsOnFailure(serve);
    const bridge = [COMMAND, ...commandLine(serve.url, ['--state-folder', folder.path])];
    const ask = async (...method: string[]): Promise<string> => {
      const args = ['-y', INSPECTOR, '--cli', ...bridge, '--method', ...method];
      const { stdout } = await run('npx', args, { cwd: folder.path, timeout: 240_000 });
      return stdout;
    };
    expect(await ask('tools/list')).toContain('"countdown"');
    const called = await ask('tools/call', '--tool-name', 'countdown', '--tool-arg', 'from=3', 'intervalMs=10');
    expect(called).toContain('done 3');
  }, 600_000);
});
