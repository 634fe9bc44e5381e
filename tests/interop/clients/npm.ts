/** Programs that users start with npx: installed once a version, into the cache. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { cached, step } from '../cache.ts';

/** Resolves with the file that is the program, or says why there is none. */
export async function npmProgram(
  name: string,
  version: string,
  program: string,
  options: { readonly mayFetch: boolean },
): Promise<{ readonly file: string } | { readonly failed: string }> {
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const found = await cached(`npm-${name.replace('/', '-')}-${version}`, options, (folder) =>
    step('npm', [...install, '--prefix', folder, `${name}@${version}`], { cwd: folder }),
  );
  if ('failed' in found) return found;
  const home = path.join(found.folder, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')) as { bin: Record<string, string> };
  const file = bin[program];
  return file === undefined ? { failed: `${name} ${version} has no ${program}` } : { file: path.join(home, file) };
}
