import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { CLIENT_LINES } from '../e2e/official-client.ts';
import { readTally, runSuite } from './run-suite.ts';

const CLIENT = fileURLToPath(new URL('conformance-client.ts', import.meta.url));
/** Scenarios of 0.1.16 and how many checks each makes: a run that made fewer did not run it all. */
const SCENARIOS = [
  ['initialize', '1'],
  ['tools_call', '1'],
  ['elicitation-sep1034-client-defaults', '5'],
  ['sse-retry', '3'],
] as const;

describe.each(CLIENT_LINES)('the official conformance suite for clients, %s on ResumableTransport', (line) => {
  // `sse-retry` allows 200 ms over the time asked for: a busy machine may need another try.
  it.each(SCENARIOS)(
    '[E2E-CLIENT-SUITE] passes %s without a warning',
    { retry: 2, timeout: 150_000 },
    async (scenario, checks) => {
      using folder = makeScratchFolder();
      const command = `"${process.execPath}" --conditions=@throughline/source "${CLIENT}" ${line}`;
      const { code, text } = await runSuite(['client', '--command', command, '--scenario', scenario], folder.path);
      expect({ code, ...readTally(text) }, text).toEqual({
        code: 0,
        passed: checks,
        of: checks,
        failed: '0',
        warnings: '0',
      });
    },
  );
});
