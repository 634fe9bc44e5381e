/** Finds the file behind `module: …`: a path relative to the working directory, or a package seen from there. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire, findPackageJSON } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const IMPORT_CONDITIONS = ['node', 'import', 'module-sync', 'default'];

/** The target of one entry of an `exports` map under the conditions of `import`. */
function pickTarget(entry: unknown): string | undefined {
  if (typeof entry === 'string') return entry;
  if (typeof entry !== 'object' || entry === null) return undefined;
  for (const [condition, target] of Object.entries(entry)) {
    if (!IMPORT_CONDITIONS.includes(condition)) continue;
    const found = pickTarget(target);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** `import.meta.resolve` knows no other place to start from than this file, and `require.resolve` no `import` condition. */
function resolvePackage(name: string, cwd: string): string | undefined {
  const from = join(cwd, 'package.json');
  try {
    const manifest = findPackageJSON(name, pathToFileURL(from));
    if (manifest === undefined) return undefined;
    const { exports } = JSON.parse(readFileSync(manifest, 'utf8')) as { exports?: unknown };
    const subpath =
      '.' +
      name
        .split('/')
        .slice(name.startsWith('@') ? 2 : 1)
        .map((part) => `/${part}`)
        .join('');
    const hasSubpaths =
      typeof exports === 'object' && exports !== null && Object.keys(exports).some((key) => key.startsWith('.'));
    const entry = hasSubpaths ? (exports as Record<string, unknown>)[subpath] : subpath === '.' ? exports : undefined;
    const target = pickTarget(entry);
    return target === undefined ? createRequire(from).resolve(name) : join(dirname(manifest), target);
  } catch {
    return undefined;
  }
}

/** What to `import()`: the URL of a file that exists, or `module` itself for a package of the product's own. */
export function resolveModule(module: string, cwd: string): string {
  if (module.startsWith('file:')) return module;
  const path = resolve(cwd, module);
  if (existsSync(path)) return pathToFileURL(path).href;
  if (module.startsWith('.') || module.startsWith('/')) return pathToFileURL(path).href;
  const file = resolvePackage(module, cwd);
  return file === undefined ? module : pathToFileURL(file).href;
}
