/** Runs the official conformance suite as a process of its own. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

/** Results are written to `folder`. Rejects if the suite does not end within two minutes. */
export async function runSuite(
  selection: readonly string[],
  folder: string,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [SUITE, ...selection, '-o', folder], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  try {
    const code = await within(
      'the conformance suite',
      new Promise<number | null>((resolve) => child.once('close', resolve)),
      120_000,
    );
    return { code, text };
  } finally {
    child.kill('SIGKILL');
  }
}

/** The last line but one of a run of a single scenario, as text. */
export function readTally(text: string): Readonly<Record<string, string>> {
  return (
    /^Passed: (?<passed>\d+)\/(?<of>\d+), (?<failed>\d+) failed, (?<warnings>\d+) warnings$/m.exec(text)?.groups ?? {}
  );
}
