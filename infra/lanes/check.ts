/** `npm run check`: the gates alone. */
import process from 'node:process';
import { checkPart, runParts } from './parts.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';

const results = await runParts([checkPart], { partDeadlineMs: 5 * 60_000, environment: {} });
process.stdout.write(`\n${formatParts(results)}\n\n${formatTally(addUp(results))}\n`);
process.exitCode = exitCodeOf(results);
