/** Breaks the product on purpose, in a copy of the tree, and shows that the simulation catches it: `mutants.ts [name…]`. */
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
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { MUTANTS } from './src/mutants.ts';
import type { Mutant } from './src/mutants.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SEEDS = process.env['MUTANT_SEEDS'] ?? '300';

const wanted = process.argv.slice(2);
let missed = 0;
for (const mutant of MUTANTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const { caught, said } = tryMutant(mutant);
  if (!caught) missed++;
  process.stdout.write(`${caught ? 'caught' : 'MISSED'} ${mutant.name}: ${mutant.breaks}\n${said}\n`);
}
process.exitCode = missed === 0 ? 0 : 1;

function tryMutant(mutant: Mutant): { caught: boolean; said: string } {
  const tree = mkdtempSync(path.join(tmpdir(), 'throughline-mutant-'));
  try {
    copyTree(tree);
    for (const { file, from, to } of mutant.edits) {
      const target = path.join(tree, file);
      const text = readFileSync(target, 'utf8');
      if (text.split(from).length !== 2) return { caught: false, said: `  does not apply to ${file}` };
      writeFileSync(
        target,
        text.replace(from, () => to),
      );
    }
    if (mutant.test !== undefined) return tryTest(tree, mutant.test);
    const args = ['--conditions=@throughline/source', 'tests/simulation/simulate.ts', '--seeds', SEEDS, '--stop'];
    if (mutant.faults !== undefined) args.push('--faults', mutant.faults.join(','));
    if (mutant.overrides !== undefined) args.push('--overrides', JSON.stringify(mutant.overrides));
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: tree, encoding: 'utf8' });
    const seed = /^seed (\d+) fails/m.exec(stdout)?.[1];
    // The same seed passes without the break, or it would show nothing.
    const sane = [...args, '--from', seed ?? '1'].map((arg) => (arg === SEEDS ? '1' : arg));
    const isCaught =
      status === 1 && seed !== undefined && spawnSync(process.execPath, sane, { cwd: ROOT }).status === 0;
    return {
      caught: isCaught,
      said: (isCaught ? stdout : stdout + stderr)
        .split('\n')
        .map((line) => `  ${line.slice(0, 220)}`)
        .join('\n'),
    };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/** The test fails in the broken tree and passes in ours. */
function tryTest(tree: string, test: string): { caught: boolean; said: string } {
  const run = (cwd: string) =>
    spawnSync(process.execPath, [path.join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', test], {
      cwd,
      encoding: 'utf8',
    });
  const broken = run(tree);
  const caught = broken.status === 1 && /Tests .*failed/.test(broken.stdout) && run(ROOT).status === 0;
  return {
    caught,
    said: (broken.stdout + broken.stderr)
      .split('\n')
      .map((line) => `  ${line.slice(0, 220)}`)
      .join('\n'),
  };
}

/** Sources are copied; packages of others are linked. */
function copyTree(tree: string): void {
  const isSource = (from: string): boolean => !/[/\\](node_modules|dist|\.turbo)$/.test(from);
  for (const folder of ['libs', 'services', 'tests/simulation'])
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
