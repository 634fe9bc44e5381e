/** What is wrong with the command line and the configuration, all of it at once. */
import { redactCredentials } from './redact-credentials.ts';

export interface Fault {
  /** Where it was written: `--listen`, `THROUGHLINE_LISTEN`, `throughline.yaml: limits.drain`. */
  readonly where: string;
  /** What is wrong and what to write instead; a sentence or two. */
  readonly problem: string;
}

/** As it is shown. Whoever writes a password into a URL in the wrong place is told so, not everybody who reads the log. */
export function faultText({ where, problem }: Fault): string {
  return `${redactCredentials(where)}: ${redactCredentials(problem)}`;
}

/** The command line or the configuration cannot be used. Thrown with every fault that was found. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly Fault[];
  constructor(faults: readonly Fault[]) {
    super(faults.map(faultText).join('\n'));
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
