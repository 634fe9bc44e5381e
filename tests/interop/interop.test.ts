/** `npm run interop` as a person runs it, on the embedded log and on Kafka. It fetches and builds clients: deep lane only. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { beforeAll, describe, expect, it, onTestFailed } from 'vitest';
import type { TestContext } from 'vitest';
import { CLIENTS } from './clients/index.ts';
import type { InteropRow } from './interop-table.ts';
import { STEPS } from './judge.ts';
import type { Step } from './judge.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN_MS = 40 * 60_000;
interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly rows: readonly InteropRow[];
}

async function runInterop(log: 'embedded' | 'kafka'): Promise<Ran> {
  using folder = makeScratchFolder();
  const report = path.join(folder.path, 'report.json');
  const args = ['infra/run.mjs', 'interop', '--log', log, '--report', report];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const rows = code === 2 ? [] : readRows(report);
  return { code, output, rows };
}

function readRows(file: string): readonly InteropRow[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as InteropRow[];
  } catch {
    return [];
  }
}

describe.runIf(process.env['DEEP'] === '1').each(['embedded', 'kafka'] as const)(
  'npm run interop -- --log %s',
  (log) => {
    let ran: Ran;
    beforeAll(async () => {
      ran = await runInterop(log);
    }, RUN_MS);

    it('[INTEROP-SKIPPED] prints one table with a line for each step of each client, or why it was skipped', (test) => {
      onTestFailed(() => void process.stderr.write(ran.output));
      if (ran.output.includes('there is no Kafka')) test.skip('there is no Kafka');
      expect(ran.rows.map(({ name }) => name)).toEqual(CLIENTS.map(({ name }) => name));
      for (const row of ran.rows) {
        const lines = ran.output.split('\n').filter((line) => line.startsWith(`${row.name} `));
        // Named once when it is prepared.
        expect(lines, row.name).toHaveLength('skipped' in row ? 2 : 1 + STEPS.length);
      }
    });

    const expectRight = (test: TestContext, name: string, step: Step): void => {
      const row = ran.rows.find((each) => each.name === name);
      if (row === undefined || 'skipped' in row) test.skip(row?.skipped ?? 'it did not run');
      else expect(row.seen[step].isRight, `${step}: ${row.seen[step].text}`).toBe(true);
    };
    const clients = CLIENTS.map(({ name }) => ({ name }));

    it.for(clients)('[INTEROP-CALL] $name connects and calls, also over kills and planned stops', ({ name }, test) => {
      for (const step of ['initialize', 'call', 'kill', 'drain'] as const) expectRight(test, name, step);
    });

    it.for(clients)('[INTEROP-REFUSED] $name fails a call whose cursor cannot be continued', ({ name }, test) => {
      expectRight(test, name, 'refusal');
    });

    it.for(clients)(
      '[INTEROP-GONE] $name notices that its session is gone, and can begin another',
      ({ name }, test) => {
        expectRight(test, name, '404');
      },
    );
  },
);

describe('docs/reference/interop.md', () => {
  const page = readFileSync(path.join(ROOT, 'docs/reference/interop.md'), 'utf8');

  it('[INTEROP-PAGE] is dated, and has each of the seven clients with its version and nothing wrong', () => {
    expect(page).toMatch(/^- Date: \d{4}-\d{2}-\d{2}$/m);
    expect(CLIENTS).toHaveLength(7);
    for (const { name } of CLIENTS)
      expect(page, name).toMatch(
        new RegExp(`^\\| ${name} +\\| \\d+\\.\\d+\\.\\d+ |^- \\*\\*${name}\\*\\* was skipped: `, 'm'),
      );
    expect(page).not.toContain('**wrong**');
  });
});
