/** Writes the pages of docs/reference that are made from tables: `node infra/write-reference.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { REFERENCE_PAGES } from './reference-pages.ts';

for (const { file, render } of REFERENCE_PAGES) {
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, await render());
  process.stdout.write(`wrote ${fileURLToPath(file)}\n`);
}
