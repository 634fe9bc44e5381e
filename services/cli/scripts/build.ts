/** `npm run build -w throughline`: dist/, or a message that says what is not declared. */
import path from 'node:path';
import process from 'node:process';
import { bundle, PACKAGE, readManifest } from './bundle.ts';

const { imported, inlined } = await bundle(path.join(PACKAGE, 'dist'));
const declared = Object.keys(readManifest('services/cli').dependencies ?? {});
const faults = [
  ...inlined.map((name) => `${name} is bundled; declare it in services/cli/package.json`),
  ...declared
    .filter((name) => !imported.includes(name))
    .map((name) => `${name} is declared in services/cli/package.json, but nothing imports it`),
];
for (const fault of faults) process.stderr.write(`build: ${fault}\n`);
process.stderr.write(`build: dist/ written, ${imported.length} npm packages outside\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
