/** `npm test`: what every change must pass, at most 12 minutes on 2 cores. */
import process from 'node:process';
import { laneParts, runParts } from './parts.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';

const results = await runParts(laneParts('change'), { partDeadlineMs: 10 * 60_000, environment: {} });
process.stdout.write(`\n${formatParts(results)}\n\n${formatTally(addUp(results))}\n`);
process.exitCode = exitCodeOf(results);
