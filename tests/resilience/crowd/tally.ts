/** What a crowd of clients got and was told, and what must never be. */

/** A broken promise. `wrong`: none of the others, such as an error that nobody promised, or a word that was not true. */
export type FindingKind = 'lost' | 'repeated' | 'run twice' | 'hung' | 'wrong';

export interface Finding {
  readonly kind: FindingKind;
  readonly what: string;
}

export interface Counts {
  /** Calls that ended, however. */
  calls: number;
  /** Answers 503, each with Retry-After. */
  refused: number;
  /** Answers 504 that say `mayHaveRun`; the same request is sent again, and its one run answers it. */
  mayHaveRun: number;
  /** Calls that ended with `OWNER_LOST`, which says whether they may have run. */
  ownerLost: number;
  /** Calls that got no answer in the time in which a request may be sent again: their client knows that they may have run. */
  unanswered: number;
  /** Sessions that ended with a reason: their client began anew. */
  sessionsEnded: number;
  /** Connections that broke or stood still, and were replaced. */
  dropped: number;
  /** Standalone streams that had to be asked for again. */
  relistened: number;
  /** Milliseconds until a POST was answered, at most. */
  longestHeadMs: number;
}

export function noCounts(): Counts {
  return {
    ...{ calls: 0, refused: 0, mayHaveRun: 0, ownerLost: 0, unanswered: 0, sessionsEnded: 0 },
    ...{ dropped: 0, relistened: 0, longestHeadMs: 0 },
  };
}

/** How a call ended, for the comparison with the runs that left a line. */
export interface CallEnd {
  readonly call: string;
  readonly ended: 'result' | 'not run' | 'unknown';
}

/** What the side file says against what clients were told. `lines`: ids of calls, one a run. */
export function judgeRuns(lines: readonly string[], ends: readonly CallEnd[]): Finding[] {
  const runs = new Map<string, number>();
  for (const call of lines) runs.set(call, (runs.get(call) ?? 0) + 1);
  const findings: Finding[] = [];
  for (const [call, count] of runs)
    if (count > 1) findings.push({ kind: 'run twice', what: `${call} ran ${count} times` });
  for (const { call, ended } of ends) {
    const count = runs.get(call) ?? 0;
    if (ended === 'result' && count === 0) findings.push({ kind: 'wrong', what: `${call} has a result and never ran` });
    if (ended === 'not run' && count > 0)
      findings.push({ kind: 'wrong', what: `${call} was told not to have run, and ran` });
  }
  return findings;
}
