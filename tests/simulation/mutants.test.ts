import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
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

  // Each takes up to a minute: in the deep lane only.
  it.each(process.env['DEEP'] === '1' ? MUTANTS : [])(
    '[SIM-MUTANTS] is caught: $name, $breaks',
    { timeout: 900_000 },
    ({ name }) => {
      const { status, stdout } = spawnSync(process.execPath, ['--conditions=@throughline/source', CLI, name], {
        encoding: 'utf8',
      });
      expect(status, stdout).toBe(0);
    },
  );
});
