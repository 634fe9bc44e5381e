/** Runs the official conformance suite as a process of its own. */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';

/** The release that is called latest, and the next one, which alone freezes what a revision requires. */
export type SuiteLine = '0.1' | '0.2';

const PROGRAMS: Readonly<Record<SuiteLine, string>> = {
  '0.1': '@modelcontextprotocol/conformance',
  '0.2': 'conformance-next',
};

/** Results are written to `folder`. Rejects if the suite does not end within five minutes. */
export async function runSuite(
  selection: readonly string[],
  folder: string,
  line: SuiteLine = '0.1',
): Promise<{ readonly code: number | null; readonly text: string }> {
  const suite = fileURLToPath(new URL(`../../node_modules/${PROGRAMS[line]}/dist/index.js`, import.meta.url));
  const child = spawn(process.execPath, [suite, ...selection, '-o', folder], {
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
      300_000,
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

export interface Check {
  readonly scenario: string;
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** Every check of the run that wrote to `folder`: the summary of a suite counts no warnings. */
export function readChecks(folder: string): readonly Check[] {
  return globSync('*/checks.json', { cwd: folder }).flatMap((file) => {
    const scenario = path.dirname(file).replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    return (JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as Omit<Check, 'scenario'>[]).map(
      ({ id, status, errorMessage }) => ({
        scenario,
        id,
        status,
        ...(errorMessage === undefined ? {} : { errorMessage }),
      }),
    );
  });
}
