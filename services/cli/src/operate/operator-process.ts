import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';

/** The process that an operator's command runs in. */
export interface OperatorProcess {
  out(text: string): void;
  err(text: string): void;
  /** Resolves when what was printed was taken, or nobody takes it any more. */
  flushed(): Promise<void>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Fires on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Somebody reads along and can answer. */
  readonly isInteractive: boolean;
}
