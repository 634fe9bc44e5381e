export { answerWithin, LOG_ANSWER_MS } from './answer-within.ts';
export { abortable, deadline, sleep } from './clock.ts';
export type { Clock, Random } from './clock.ts';
export { anchorOf } from './continuity.ts';
export { errorStack, errorText, failureText, hasLogCode, LogError } from './errors.ts';
export type { LogErrorCode, LogErrorDetails } from './errors.ts';
export { DEAD_LETTER, META, WORKER_GROUP } from './port.ts';
export type {
  Appended,
  Bounds,
  JoinOptions,
  Log,
  LogDescription,
  Membership,
  PartitionRef,
  ReadBatch,
  ReadOptions,
} from './port.ts';
export { readRange } from './read-range.ts';
export type { ReadRangeOptions } from './read-range.ts';
export { ackWithin, settlesWithin, settleWithin } from './settle-within.ts';
export { systemClock, systemRandom } from './system.ts';
export { openView } from './view.ts';
export type { View, ViewFinding, ViewOptions } from './view.ts';
