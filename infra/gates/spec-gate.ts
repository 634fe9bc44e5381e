/** Ties rules to tests: every row of SPEC.md is cited by a test, every cited id is a row. `node infra/gates/spec-gate.ts`. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { checkSpec } from './check-spec.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const TESTS = [
  ...['libs', 'services', 'tests', 'infra', 'examples'].map((folder) => `${folder}/**/*.test.ts`),
  // Suites that a test file runs for each implementation.
  'libs/*/src/conformance/**/*.ts',
];

const files = globSync(TESTS, { cwd: root, exclude: (name) => name.includes('node_modules') });
const report = checkSpec(
  readFileSync(path.join(root, 'SPEC.md'), 'utf8'),
  files.map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') })),
);
for (const fault of report.faults) process.stderr.write(`spec-gate: ${fault}\n`);
process.stdout.write(
  `spec-gate: ${report.rules} rules, ${report.citations} citations in ${files.length} files, ${report.faults.length} faults\n`,
);
process.exitCode = report.faults.length === 0 ? 0 : 1;
