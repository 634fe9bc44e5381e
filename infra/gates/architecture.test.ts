/** docs/architecture.md follows one call by name: what it names has to exist where it says. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');

/** Groups of names followed by the file that holds them: `a`, `b` and `c` (`path`). */
const groups = [...text.matchAll(/((?:`\w+`(?:, | and )?)+) \(`([\w/.-]+\.ts)`\)/g)].map(
  ([, names = '', file = '']) => ({
    names: [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
    file,
  }),
);

it('[DOC-ARCHITECTURE] every function that the architecture page names is exported by the file it names', () => {
  expect(groups.length).toBeGreaterThan(15);
  const missing = groups.flatMap(({ names, file }) => {
    const full = path.join(root, file);
    if (!existsSync(full)) return [file];
    const source = readFileSync(full, 'utf8');
    return names
      .filter((name) => !new RegExp(`export (?:async )?(?:function|class|const) ${name}\\b`).test(source))
      .map((name) => `${name} in ${file}`);
  });
  expect(missing).toEqual([]);
});

it('[DOC-ARCHITECTURE] every package that the architecture page lists exists', () => {
  const packages = [...text.matchAll(/^\| `((?:libs|services)\/[\w-]+)` +\|/gm)].map(([, name = '']) => name);
  expect(packages.length).toBeGreaterThan(7);
  expect(packages.filter((name) => !existsSync(path.join(root, name, 'package.json')))).toEqual([]);
});
