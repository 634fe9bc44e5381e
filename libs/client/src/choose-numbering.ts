/**
 * How a server numbers its events, told by the first id of a session. Integers are compared only where it is agreed what
 * they mean: the server names its replay epoch, or the user says that ids are consecutive. Elsewhere a number that is
 * skipped may be another stream's, and one that is lower proves nothing. SPEC: CLIENT-NUMBERING.
 */
import { parseEventId } from '@throughline/protocol';
import { eventNumber } from './event-number.ts';
import type { Numbering } from './verdict.ts';

export interface NumberingClues {
  /** What the user says of servers that are not Throughline. */
  readonly eventIds: 'auto' | 'consecutive' | 'opaque';
  /** `X-MCP-Replay-Epoch` of the answer. */
  readonly epoch: string | null;
}

export function chooseNumbering(id: string, { eventIds, epoch }: NumberingClues): Numbering {
  if (parseEventId(id) !== null) return 'chained';
  if (eventIds === 'opaque') return 'opaque';
  if (eventIds === 'consecutive') return 'consecutive';
  return epoch !== null && eventNumber(id) !== null ? 'consecutive' : 'opaque';
}
