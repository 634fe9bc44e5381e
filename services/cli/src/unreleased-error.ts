/** How a worker's stop ends that its log did not let it finish. */
import { formatDuration } from './format-value.ts';

/** The claims stand in the log: the sessions are not lost, and wait until this worker counts as gone. */
export class UnreleasedError extends Error {
  override readonly name = 'UnreleasedError';
  constructor(partitions: readonly number[], deadAfterMs: number) {
    const which = partitions.length === 1 ? 'partition' : 'partitions';
    super(
      `the log did not take the release of ${which} ${partitions.join(', ')}: other workers take over their sessions when ` +
        `nothing was heard of this one for ${formatDuration(deadAfterMs)} (--dead-after)`,
    );
  }
}
