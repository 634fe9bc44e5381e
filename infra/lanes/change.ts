/** `npm test`: what every change must pass, at most 12 minutes on 2 cores. */
import process from 'node:process';
import { prepareContainers } from './containers.ts';
import { laneParts, runParts } from './parts.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';

const containers = await prepareContainers(['KAFKA_IMAGE']);
const parts = await runParts(laneParts(false), { partDeadlineMs: 10 * 60_000, environment: containers.environment });
await containers.stop();
const results = [...containers.results, ...parts];
process.stdout.write(`\n${formatParts(results)}\n\n${formatTally(addUp(results))}\n`);
process.exitCode = exitCodeOf(results);
