/** What a client made of a fault, told from what it delivered and how its call ended. Pure. SPEC: LIAR-VERDICT. */
import type { FaultName, FaultRow, Verdict } from './fault-table.ts';
import { FAULT_TABLE } from './fault-table.ts';
import { countedText, eventData } from './script-words.ts';

/** How a call ended: with the text of its result, with an error, or not at all. */
export type CallOutcome =
  | { readonly kind: 'result'; readonly text: string }
  | { readonly kind: 'error'; readonly error: string }
  | { readonly kind: 'hangs' };

export interface RunFacts {
  readonly fault: FaultName;
  /** The events that the script has. */
  readonly to: number;
  /** `null`: the script ran on the standalone stream, and its call is not what is watched. */
  readonly call: CallOutcome | null;
  /** The `data` of events, as the application got them. */
  readonly delivered: readonly unknown[];
  /** Whether the client said that it refuses a stream, or that it cannot prove one. */
  readonly saidRefused: boolean;
  readonly saidUnproven: boolean;
  /** Whether it said that it gave a stream up. */
  readonly saidGaveUp: boolean;
  /** How often the tool was run. */
  readonly runs: number;
  /** Between the misbehaviour and the next request of the client; `null` if none came. */
  readonly cameBackAfterMs: number | null;
}

/** Timers of clients may fire a little early. */
const EARLY_MS = 20;
export function judgeRun(facts: RunFacts): Verdict {
  const { to, call, delivered, saidUnproven } = facts;
  const row: FaultRow = FAULT_TABLE[facts.fault];
  const truth = Array.from({ length: to }, (_, index) => eventData(index + 1));
  const isPrefix = delivered.length <= truth.length && delivered.every((data, index) => data === truth[index]);
  const isWhole = isPrefix && delivered.length === truth.length;
  const isFalse = !isPrefix || (call?.kind === 'result' && (!isWhole || call.text !== countedText(to)));
  if (facts.runs > 1) return 'ran-twice';
  if (isFalse) return saidUnproven ? 'unproven' : 'fooled';
  if (isWhole && (call === null || call.kind === 'result')) {
    // A header that says that the history is another one: what follows may look right and be chance.
    if (row.class === 'must-be-refused' && !row.right.includes('exact')) return saidUnproven ? 'unproven' : 'fooled';
    const asked = row.asksWaitMs ?? 0;
    return facts.cameBackAfterMs !== null && facts.cameBackAfterMs < asked - EARLY_MS ? 'hasty' : 'exact';
  }
  if (call?.kind === 'hangs') return 'hangs';
  if (facts.saidRefused) return 'refused';
  if (call?.kind === 'error' || facts.saidGaveUp) return 'failed';
  return 'hangs';
}
