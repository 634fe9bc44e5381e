/** What an id is looked up in. */
import type { Log } from '@throughline/log';
import type { Meta, SessionDirectory } from '@throughline/tail';
import type { Settings } from '../settings.ts';
import type { OperatorProcess } from './operator-process.ts';

export interface InspectSource {
  readonly log: Log;
  readonly meta: Meta;
  /** Knows all of the partition. */
  readonly directory: SessionDirectory;
  readonly settings: Settings;
  readonly self: OperatorProcess;
  readonly signal: AbortSignal;
}
