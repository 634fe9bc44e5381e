/** `npm test [-- --only <part>,…]`: what every change must pass, about 14 minutes on 2 cores. */
import { laneParts } from './parts.ts';
import { runLane } from './run-lane.ts';

await runLane(laneParts(false), {
  command: 'npm test',
  does: 'Runs what every change must pass, about 14 minutes on 2 cores.',
  images: ['KAFKA_IMAGE'],
  partDeadlineMs: 10 * 60_000,
  environment: {},
});
