/**
 * `npm run bench [-- --only <word>] [--write]`: every case one after the other, each with what it is measured against in
 * the same run. `--write` keeps the result in docs/reference/benchmarks/<date>.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { flag, text } from '../infra/options/option.ts';
import { optionsOrExit } from '../infra/options/read-options.ts';
import { callersAtOnce, callsEmbedded } from './cases/calls-embedded.ts';
import { callsOnKafka } from './cases/calls-kafka.ts';
import { costOfDelivery, costOfMessage } from './cases/fan-out.ts';
import { idleMemory } from './cases/idle-memory.ts';
import { replicas } from './cases/replicas.ts';
import { resumeHerd } from './cases/resume-herd.ts';
import { describeMachine } from './lib/machine.ts';
import { renderCase, renderPage } from './lib/render.ts';
import type { BenchCase, CaseResult } from './lib/result.ts';

const CASES: readonly BenchCase[] = [
  callsOnKafka,
  callsEmbedded,
  callersAtOnce,
  resumeHerd,
  costOfMessage,
  costOfDelivery,
  idleMemory,
  replicas,
];

const BENCH = {
  command: 'npm run bench',
  does: 'Measures every case, one after the other, each against what it is compared with in the same run.',
  options: {
    only: text('<word>', 'the cases whose name has it (default: all)', ''),
    write: flag('keep the result in docs/reference/benchmarks/<date>.md'),
  },
};

const values = optionsOrExit(BENCH, process.argv.slice(2));
const chosen = CASES.filter(({ name }) => name.includes(values.only));
if (chosen.length === 0) {
  process.stderr.write(`--only ${values.only}: no such case; they are ${CASES.map(({ name }) => name).join(', ')}\n`);
  process.exit(2);
}
const results: CaseResult[] = [];
for (const each of chosen) {
  process.stderr.write(`${each.name} …\n`);
  const result = await each.run();
  results.push(result);
  process.stdout.write(`${renderCase(result)}\n`);
}
if (values.write) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const date = new Date().toISOString().slice(0, 10);
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  const file = path.join(root, 'docs/reference/benchmarks', `${date}.md`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, renderPage({ date, commit, machine: describeMachine(), results }));
  process.stderr.write(`written: ${path.relative(root, file)}\n`);
}
