/** From runs of faults to the rows of the table. */
import { spreadOf } from '../crowd/recovery.ts';
import { noCounts } from '../crowd/tally.ts';
import type { Finding, FindingKind } from '../crowd/tally.ts';
import type { FaultRun } from '../faults/run-fault.ts';
import type { FaultRow } from './fault-table.ts';

/** What was found when no fault was under way. */
export function foundLater(findings: readonly Finding[]): FaultRun {
  const nothing = { untold: [], recoveries: [], silence: { p50Ms: 0, worstMs: 0 } };
  return { ...{ name: 'found later', counts: noCounts(), findings }, ...nothing };
}

/** In the order in which faults first happened. */
export function rowsOf(runs: readonly FaultRun[]): FaultRow[] {
  return [...Map.groupBy(runs, ({ name }) => name)].map(([fault, own]) => {
    const findings = own.flatMap((run) => run.findings);
    const count = (kind: FindingKind): number => findings.filter((finding) => finding.kind === kind).length;
    const sum = (of: (run: FaultRun) => number): number => own.reduce((total, run) => total + of(run), 0);
    const { p50Ms, worstMs } = spreadOf(own.flatMap(({ recoveries }) => recoveries));
    return {
      ...{ fault, runs: own.length, calls: sum(({ counts }) => counts.calls) },
      refused: sum(({ counts }) => counts.ownerLost + counts.unanswered + counts.sessionsEnded),
      ...{ lost: count('lost'), repeated: count('repeated'), runTwice: count('run twice') },
      hung: count('hung'),
      wrong: count('wrong') + sum(({ untold }) => untold.length),
      recoveryMs: { p50: p50Ms, worst: worstMs },
    };
  });
}
