/** What is wrong with the configuration, all of it at once. */

export interface Fault {
  /** Where it was written: `--listen`, `THROUGHLINE_LISTEN`, `throughline.yaml: limits.drain`. */
  readonly where: string;
  /** What is wrong and what to write instead; a sentence or two. */
  readonly problem: string;
}

/** The configuration cannot be used. Thrown with every fault that was found. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly Fault[];
  constructor(faults: readonly Fault[]) {
    super(formatFaults(faults));
    this.faults = faults;
  }
}

/** Something outside the configuration stands in the way (port in use, file unreadable). The message names the fix. */
export class StartError extends Error {
  override readonly name = 'StartError';
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

function formatFaults(faults: readonly Fault[]): string {
  const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  const lines = faults.map(({ where, problem }) => `  - ${where}: ${problem}`);
  return [`${count} in the configuration; nothing was started.`, ...lines, 'All options: throughline --help'].join(
    '\n',
  );
}
