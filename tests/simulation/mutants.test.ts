import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { catchMutant } from './src/catch-mutant.ts';
import { MUTANTS } from './src/mutants.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const CLI = path.join(import.meta.dirname, 'mutants.ts');

describe('a build that is broken on purpose', () => {
  it('[SIM-MUTANTS] is on the list with edits that apply to the product as it is', () => {
    const stale = MUTANTS.flatMap(({ name, edits }) =>
      edits
        .filter(({ file, from }) => readFileSync(path.join(ROOT, file), 'utf8').split(from).length !== 2)
        .map(({ file }) => `${name}: ${file}`),
    );
    expect(stale).toEqual([]);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    expect(MUTANTS.length).toBeGreaterThanOrEqual(12);
  });

  // One seed is known to catch each; when what seeds draw has changed, another one of a few does.
  it.each(MUTANTS.filter(({ test }) => test === undefined))(
    '[SIM-MUTANTS] is caught by a seed: $name, $breaks',
    { timeout: 900_000 },
    async (mutant) => {
      const seeds = process.env['DEEP'] === '1' ? 300 : 40;
      expect(await catchMutant(mutant, seeds, 2), 'no seed fails').not.toBeNull();
    },
  );

  // Each copies the tree and runs the test runner in it: in the deep lane only.
  it.each(process.env['DEEP'] === '1' ? MUTANTS.filter(({ test }) => test !== undefined) : [])(
    '[SIM-MUTANTS] is caught by a test: $name, $breaks',
    { timeout: 900_000 },
    ({ name }) => {
      const { status, stdout } = spawnSync(process.execPath, ['--conditions=@throughline/source', CLI, name], {
        encoding: 'utf8',
      });
      expect(status, stdout).toBe(0);
    },
  );
});
