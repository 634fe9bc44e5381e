/** Preloaded into a process of the pool: sources are read as the mutant named in `MUTANT` has them. Nothing is written. */
import { registerHooks } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { MUTANTS } from './src/mutants.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const mutant = MUTANTS.find(({ name }) => name === process.env['MUTANT']);
if (mutant === undefined) throw new RangeError(`there is no mutant ${process.env['MUTANT'] ?? ''}`);

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.startsWith('file:')) return loaded;
    const file = path.relative(ROOT, fileURLToPath(url)).replaceAll(path.sep, '/');
    let text: string | null = null;
    for (const edit of mutant.edits) {
      if (edit.file !== file) continue;
      text ??= typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
      if (text.split(edit.from).length !== 2) throw new Error(`${mutant.name} does not apply to ${file}`);
      text = text.replace(edit.from, () => edit.to);
    }
    return text === null ? loaded : { ...loaded, source: text };
  },
});
