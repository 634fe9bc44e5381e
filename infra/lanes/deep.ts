/** `npm run test:deep`: everything, with DEEP=1; writes docs/reference/deep-results/<date>.md, which is committed. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { prepareContainers } from './containers.ts';
import { renderDeepResult } from './deep-result.ts';
import { laneParts, runParts } from './parts.ts';
import { ROOT } from './run-command.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';

/** The commit that was tested, and whether anything else was changed. */
function describeCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with uncommitted changes');
  } catch {
    return 'unknown (no git repository)';
  }
}

const date = new Date().toISOString().slice(0, 10);
const commit = describeCommit();
const containers = await prepareContainers(['KAFKA_IMAGE', 'NODE_IMAGE', 'HAPROXY_IMAGE']);
const environment = { DEEP: '1', ...containers.environment };
const parts = await runParts(laneParts(true), { partDeadlineMs: 3 * 60 * 60_000, environment });
await containers.stop();
const results = [...containers.results, ...parts];
const file = path.join(ROOT, 'docs', 'reference', 'deep-results', `${date}.md`);
mkdirSync(path.dirname(file), { recursive: true });
const machine = { cores: availableParallelism(), memoryBytes: totalmem(), node: process.version };
writeFileSync(file, renderDeepResult({ date, commit, machine, results }));
process.stdout.write(`\nwritten: ${path.relative(ROOT, file)}\n`);
process.stdout.write(`\n${formatParts(results)}\n\n${formatTally(addUp(results))}\n`);
process.exitCode = exitCodeOf(results);
