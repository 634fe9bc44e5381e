/**
 * `npm run test:deep [-- --only <part>,…]`: everything, with DEEP=1; writes docs/reference/deep-results/<date>.md, which
 * is committed. Parts that did not run now stay on the page of the day as they were, each with its commit;
 * so does what people wrote below the table.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { format } from 'prettier';
import { describeCommit } from './describe-commit.ts';
import { mergeParts, readDeepParts, readSections, renderDeepResult } from './deep-result.ts';
import { laneParts } from './parts.ts';
import { ROOT } from './run-command.ts';
import { runLane } from './run-lane.ts';

const date = new Date().toISOString().slice(0, 10);
const commit = describeCommit();
const file = path.join(ROOT, 'docs', 'reference', 'deep-results', `${date}.md`);

await runLane(laneParts(true), {
  command: 'npm run test:deep',
  does: 'Runs everything there is, and writes docs/reference/deep-results/<date>.md.',
  images: ['KAFKA_IMAGE', 'NODE_IMAGE', 'HAPROXY_IMAGE'],
  partDeadlineMs: 3 * 60 * 60_000,
  environment: { DEEP: '1' },
  async onResults(results) {
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const now = results.map((result) => ({ ...result, commit }));
    const machine = { cores: availableParallelism(), memoryBytes: totalmem(), node: process.version };
    const parts = mergeParts(readDeepParts(before), now);
    const page = renderDeepResult({ date, machine, parts, sections: readSections(before) });
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, await format(page, { parser: 'markdown' }));
    process.stdout.write(`\nwritten: ${path.relative(ROOT, file)}\n`);
  },
});
