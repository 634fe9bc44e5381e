/** The code of every row of the table: none is left out, none is too many. */
import type { FaultName } from './fault-table.ts';
import type { Misbehaviour } from './misbehaviour.ts';
import { POST_LIES } from './post-lies.ts';
import { RESUME_LIES } from './resume-lies.ts';
import { STREAM_LIES } from './stream-lies.ts';

const MISBEHAVIOURS = { ...STREAM_LIES, ...RESUME_LIES, ...POST_LIES } satisfies Record<FaultName, Misbehaviour>;

export function misbehaviourOf(fault: FaultName | null): Misbehaviour | null {
  return fault === null ? null : MISBEHAVIOURS[fault];
}
