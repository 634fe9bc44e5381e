import { fileURLToPath } from 'node:url';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CLIENT_LINES } from '../e2e/official-client.ts';
import { runConformance } from './run-conformance.ts';

const CLIENT = fileURLToPath(new URL('./suite-client.ts', import.meta.url));

describe.each(CLIENT_LINES)('the official conformance suite against client %s on the resumable transport', (line) => {
  it.each([
    ['initialize', 1],
    ['tools_call', 1],
    ['elicitation-sep1034-client-defaults', 5],
    ['sse-retry', 3],
  ])(
    '[CLIENT-CONFORMANCE] passes %s, all %d checks of it',
    // The suite wants the reconnect within 200 ms of its time: on a busy machine it may come later.
    { retry: 3, timeout: 500_000 },
    async (scenario, checks) => {
      const folder = makeScratchFolder();
      onTestFinished(() => folder[Symbol.dispose]());
      const command = `${process.execPath} --conditions=@throughline/source ${CLIENT}`;
      const args = ['client', '--command', command, '--scenario', scenario, '-o', folder.path];
      const { code, text } = await runConformance(args, folder.path, { CLIENT_LINE: line });
      const { passed, of, failed, warnings } =
        /^Passed: (?<passed>\d+)\/(?<of>\d+), (?<failed>\d+) failed, (?<warnings>\d+) warnings$/m.exec(text)?.groups ??
        {};
      expect({ code, passed, of, failed, warnings }, text).toEqual({
        code: 0,
        passed: String(checks),
        of: String(checks),
        failed: '0',
        warnings: '0',
      });
    },
  );
});
