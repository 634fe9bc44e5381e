/** Adds up many runs: one row a fault that struck, in the columns that the chaos on real brokers has. Pure. */
import { renderFaultTable } from '../../resilience/chaos/fault-table.ts';
import type { FaultRow } from '../../resilience/chaos/fault-table.ts';
import type { SeedReport } from './seed-report.ts';

/** Which promises are which column; every other one counts as wrong. */
const COLUMN_OF: Readonly<Record<string, 'lost' | 'repeated' | 'runTwice' | 'hung'>> = {
  'SIM-NO-GAP': 'lost',
  'SIM-LOG': 'lost',
  'SIM-SAME': 'lost',
  'SIM-LINEAR': 'lost',
  'SIM-NO-REPEAT': 'repeated',
  'SIM-ONCE': 'runTwice',
  'SIM-ENDS': 'hung',
  'SIM-LIVE': 'hung',
};

/** A run counts in the row of each fault that struck in it; the last row holds each run once. */
export function tally(reports: readonly SeedReport[]): readonly FaultRow[] {
  const names = [...new Set(reports.flatMap(({ strikes }) => strikes.map(({ fault }) => fault)))].sort();
  const calm = reports.filter(({ strikes }) => strikes.length === 0);
  return [
    ...names.map((name) =>
      rowOf(
        name,
        reports.filter(({ strikes }) => strikes.some(({ fault }) => fault === name)),
        (fault) => fault === name,
      ),
    ),
    ...(calm.length === 0 ? [] : [rowOf('(none struck)', calm, () => false)]),
    rowOf('all runs', reports, () => true),
  ];
}

function rowOf(fault: string, reports: readonly SeedReport[], isOf: (fault: string) => boolean): FaultRow {
  const counts = { lost: 0, repeated: 0, runTwice: 0, hung: 0, wrong: 0 };
  for (const { findings } of reports) for (const { rule } of findings) counts[COLUMN_OF[rule] ?? 'wrong']++;
  const times = reports
    .flatMap(({ strikes }) => strikes.flatMap((strike) => (isOf(strike.fault) ? [strike.recoveredMs] : [])))
    .filter((ms) => ms !== null)
    .sort((a, b) => a - b);
  return {
    fault,
    runs: reports.length,
    calls: reports.reduce((sum, { calls }) => sum + calls, 0),
    refused: reports.reduce((sum, { refused }) => sum + refused, 0),
    ...counts,
    recoveryMs: times.length === 0 ? null : { p50: times[times.length >> 1] ?? 0, worst: times.at(-1) ?? 0 },
  };
}

export function renderTally(reports: readonly SeedReport[]): string {
  return renderFaultTable(tally(reports));
}
