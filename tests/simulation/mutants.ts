/** Breaks the product on purpose and shows that a seed, or a test, catches it: `mutants.ts [name…]`. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { catchMutant } from './src/catch-mutant.ts';
import { MUTANTS } from './src/mutants.ts';
import type { Mutant } from './src/mutants.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SEEDS = Number(process.env['MUTANT_SEEDS'] ?? '300');

const wanted = process.argv.slice(2);
let missed = 0;
for (const mutant of MUTANTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const said = mutant.test === undefined ? await trySeeds(mutant) : tryTest(mutant, mutant.test);
  if (said === null) missed++;
  process.stdout.write(`${said === null ? 'MISSED' : 'caught'} ${mutant.name}: ${mutant.breaks}; ${said ?? ''}\n`);
}
process.exitCode = missed === 0 ? 0 : 1;

async function trySeeds(mutant: Mutant): Promise<string | null> {
  const caught = await catchMutant(mutant, SEEDS, availableParallelism());
  return caught === null ? null : `seed ${caught.seed}: ${caught.rules.join(', ')}`;
}

/** The test fails in a copy of the tree that is broken, and passes in ours. */
function tryTest(mutant: Mutant, test: string): string | null {
  const tree = mkdtempSync(path.join(tmpdir(), 'throughline-mutant-'));
  try {
    copyTree(tree);
    for (const { file, from, to } of mutant.edits) {
      const target = path.join(tree, file);
      const text = readFileSync(target, 'utf8');
      if (text.split(from).length !== 2) return null;
      writeFileSync(
        target,
        text.replace(from, () => to),
      );
    }
    const broken = runTest(tree, test);
    const isCaught = broken.status === 1 && /Tests .*failed/.test(broken.stdout) && runTest(ROOT, test).status === 0;
    return isCaught ? test : null;
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

function runTest(cwd: string, test: string): { readonly status: number | null; readonly stdout: string } {
  return spawnSync(process.execPath, [path.join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', test], {
    cwd,
    encoding: 'utf8',
  });
}

/** Sources are copied; packages of others are linked. */
function copyTree(tree: string): void {
  const isSource = (from: string): boolean => !/[/\\](node_modules|dist|\.turbo)$/.test(from);
  for (const folder of ['libs', 'services', 'tests/simulation', 'tests/resilience/chaos', 'tests/deadlines'])
    cpSync(path.join(ROOT, folder), path.join(tree, folder), { recursive: true, filter: isSource });
  writeFileSync(path.join(tree, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  cpSync(path.join(ROOT, 'vitest.config.ts'), path.join(tree, 'vitest.config.ts'));
  linkPackages('.', tree);
  for (const group of ['libs', 'services'])
    for (const name of readdirSync(path.join(ROOT, group))) linkPackages(path.join(group, name), tree);
}

function linkPackages(folder: string, tree: string): void {
  const from = path.join(ROOT, folder, 'node_modules');
  if (!existsSync(from)) return;
  const to = path.join(tree, folder, 'node_modules');
  mkdirSync(path.join(to, '@throughline'), { recursive: true });
  for (const entry of readdirSync(from))
    if (entry !== '@throughline') symlinkSync(path.join(from, entry), path.join(to, entry));
  for (const group of folder === '.' ? ['libs', 'services'] : [])
    for (const name of readdirSync(path.join(ROOT, group)))
      symlinkSync(path.join(tree, group, name), path.join(to, '@throughline', name));
}
