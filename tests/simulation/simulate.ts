/** Runs many seeds: `npm run simulate -- --seeds 1000 [--from 1]`. Prints each failing seed with the command that replays it. */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { FAULTS } from './src/faults.ts';
import type { FaultName } from './src/faults.ts';
import type { PlanOptions } from './src/draw-plan.ts';
import { replayCommand, runSeed } from './src/run-seed.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    /** Only these, separated by commas; else what each seed draws. */
    faults: { type: 'string' },
    /** Fields of the plan, as JSON. */
    overrides: { type: 'string' },
    /** End with the first seed that fails. */
    stop: { type: 'boolean', default: false },
  },
});
const count = Number(values.seeds);
const from = Number(values.from);
if (!Number.isSafeInteger(count) || !Number.isSafeInteger(from) || count < 1) {
  process.stderr.write(
    'Usage: npm run simulate -- --seeds <count> [--from <first seed>] [--faults <name,…>] [--stop]\n',
  );
  process.exit(2);
}
const names = values.faults?.split(',') ?? [];
const unknown = names.filter((name) => !(name in FAULTS));
if (unknown.length > 0) {
  process.stderr.write(`Unknown faults: ${unknown.join(', ')}. Known: ${Object.keys(FAULTS).join(', ')}\n`);
  process.exit(2);
}
const options: PlanOptions = {
  ...(values.faults === undefined ? {} : { faults: names as FaultName[] }),
  ...(values.overrides === undefined
    ? {}
    : { overrides: JSON.parse(values.overrides) as PlanOptions['overrides'] & {} }),
};
const startedMs = performance.now();
let failed = 0;
let calls = 0;
let steps = 0;
for (let seed = from; seed < from + count; seed++) {
  const outcome = await runSeed(seed, options);
  calls += outcome.records.calls.length;
  steps += outcome.steps;
  if (outcome.findings.length === 0) continue;
  failed++;
  process.stdout.write(
    `seed ${seed} fails (${outcome.plan.faults.join(', ') || 'no faults'}); ${replayCommand(seed)}\n`,
  );
  for (const { rule, what } of outcome.findings.slice(0, 5)) process.stdout.write(`  [${rule}] ${what}\n`);
  if (values.stop) break;
}
const seconds = (performance.now() - startedMs) / 1000;
process.stdout.write(
  `${count - failed} seeds passed, ${failed} failed: ${calls} calls, ${steps} events, ${seconds.toFixed(1)} s\n`,
);
process.exitCode = failed === 0 ? 0 : 1;
