/** The command itself: what it prints, how it ends, and that nothing of it stays. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, inject, it } from 'vitest';

const CHAOS = fileURLToPath(new URL('./chaos.ts', import.meta.url));
const START_MS = 180_000;
const END_MS = 240_000;
const TEST_MS = 500_000;
/** In the environment of everything that it starts. */
const MARK = 'CHAOS_TEST_MARK';

function launch(...args: readonly string[]) {
  const mark = randomUUID();
  const child: ChildProcess = spawn(
    process.execPath,
    ['--conditions=@throughline/source', CHAOS, '--clients', '6', ...args],
    { env: { ...process.env, [MARK]: mark }, stdio: 'pipe' },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => (output += data.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { child, ended, output: () => output, left: () => processesWith(`${MARK}=${mark}`) };
}

function processesWith(variable: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'latin1').split('\0').includes(variable);
    } catch {
      return false;
    }
  });
}

const isInLane = process.env['DEEP'] === '1' && inject('kafkaCluster') !== null;

describe.skipIf(!isInLane)('npm run chaos', { timeout: TEST_MS }, () => {
  it('[FLT-CHAOS] [FLT-TABLE] prints its seed, what came of each fault, and the table, and leaves nothing running', async () => {
    const { ended, output, left } = launch('--each', '--seed', '4', '--fault', 'gateway killed');
    expect(await within('the end', ended, START_MS + END_MS), output()).toBe(0);
    expect(output()).toContain('seed 4');
    expect(output()).toMatch(/\| gateway killed \| 1 +\| \d+ +\| 0 +\| 0 +\| 0 +\| 0 +\| 0 +\| 0 +\|/);
    expect(left()).toEqual([]);
  });

  it('[FLT-CHAOS] ended by SIGINT in the middle of a fault it stops everything that it started', async () => {
    const { child, ended, output, left } = launch('--each', '--fault', 'worker stopped');
    await waitUntil('the clients', () => output().includes('clients stream'), START_MS);
    expect(left().length).toBeGreaterThan(4);
    child.kill('SIGINT');
    expect(await within('the end', ended, END_MS), output()).toBe(130);
    expect(left()).toEqual([]);
  });
});
