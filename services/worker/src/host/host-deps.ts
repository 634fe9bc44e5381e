/** What hosts take from outside. */
import type { Clock, Random } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';

export interface HostDeps {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Spreads reconnections of an upstream host in time; without it they are not spread. */
  readonly random?: Random;
}
