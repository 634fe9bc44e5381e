import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';

const RUN = fileURLToPath(new URL('../../infra/run.mjs', import.meta.url));

it('[E2E-DEMO] the failover demonstration shows equal ids on both sides of a kill and a kept verdict, and ends with 0', async () => {
  const child = spawn(process.execPath, [RUN, 'demo:failover'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  try {
    const code = await within(
      'the demonstration',
      new Promise<number | null>((resolve) => child.once('close', resolve)),
      120_000,
    );
    expect(code, text).toBe(0);
    expect(text.match(/^VERDICT: .*$/m)?.[0]).toBe(
      'VERDICT: kept. Nothing was lost, nothing was repeated, nothing was left hanging.',
    );
    // Ten steps and the result, each under the same id on both sides.
    expect(text.match(/^ {4}offset \d+ {2}seq \d+ {2}\S+ += offset/gm)).toHaveLength(11);
    expect(text).not.toContain('≠');
    expect(text).toContain('"code":"OWNER_LOST"');
  } finally {
    child.kill('SIGKILL');
  }
}, 150_000);
