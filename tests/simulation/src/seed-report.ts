/** What is kept of a run when thousands are made: plain data that goes from process to process. */
import type { Finding } from './checker.ts';
import type { RunOutcome } from './run-seed.ts';

export interface SeedReport {
  readonly seed: number;
  /** What the plan names. */
  readonly faults: readonly string[];
  readonly findings: readonly Finding[];
  readonly calls: number;
  readonly events: number;
  /** Calls that were told that they or their session cannot go on. */
  readonly refused: number;
  /** Each strike, with the virtual milliseconds until a call that began after it had its result; `null`: none began before all faults were over. */
  readonly strikes: readonly { readonly fault: string; readonly recoveredMs: number | null }[];
}

export function reportOf({ plan, findings, records, steps }: RunOutcome): SeedReport {
  const results = records.calls
    .filter(({ outcome, startedMs }) => outcome?.kind === 'result' && startedMs < records.quietMs)
    .map(({ startedMs, endedMs }) => ({ startedMs, endedMs: endedMs ?? Number.POSITIVE_INFINITY }));
  const recoveryOf = (atMs: number): number | null => {
    const ends = results.filter(({ startedMs }) => startedMs >= atMs).map(({ endedMs }) => endedMs);
    return ends.length === 0 ? null : Math.min(...ends) - atMs;
  };
  return {
    seed: plan.seed,
    faults: plan.faults,
    findings,
    calls: records.calls.length,
    events: steps,
    refused: records.calls.filter(({ outcome }) => outcome?.kind === 'error' || outcome?.kind === 'session-lost')
      .length,
    strikes: records.struck.map(({ fault, atMs }) => ({ fault, recoveredMs: recoveryOf(atMs) })),
  };
}
