/** Runs one seed and prints its trace and its findings: `node --conditions=@throughline/source tests/simulation/replay.ts <seed> [--quiet]`. */
import process from 'node:process';
import { runSeed } from './src/run-seed.ts';

const [seedText = process.env['SEED'] ?? '', flag] = process.argv.slice(2);
const seed = Number(seedText);
if (!Number.isSafeInteger(seed) || seedText === '') {
  process.stderr.write('Usage: replay.ts <seed> [--quiet]\n');
  process.exit(2);
}
const outcome = await runSeed(seed, { keepTrace: true });
if (flag !== '--quiet') for (const line of outcome.lines) process.stdout.write(`${line}\n`);
for (const { rule, what } of outcome.findings) process.stdout.write(`[${rule}] ${what}\n`);
process.stdout.write(
  `seed ${seed}: ${outcome.findings.length} findings, ${outcome.records.calls.length} calls, ${outcome.steps} lines, hash ${outcome.hash}\n`,
);
process.exitCode = outcome.findings.length === 0 ? 0 : 1;
