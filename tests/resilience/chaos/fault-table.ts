/** The table of faults: one row a fault, the same columns whoever injects them. */

export interface FaultRow {
  readonly fault: string;
  readonly runs: number;
  /** Calls that ended around the fault. */
  readonly calls: number;
  /** Calls and sessions that were told that they cannot go on. Null: not counted. */
  readonly refused: number | null;
  readonly lost: number;
  readonly repeated: number;
  readonly runTwice: number;
  readonly hung: number;
  /** Other broken promises, such as an error that says what is not true. */
  readonly wrong: number;
  /** Until every client received messages again, of each client and run; null: not measured. */
  readonly recoveryMs: { readonly p50: number; readonly worst: number } | null;
}

const COLUMNS: readonly (readonly [title: string, of: (row: FaultRow) => string])[] = [
  ['fault', ({ fault }) => fault],
  ['runs', ({ runs }) => String(runs)],
  ['calls', ({ calls }) => String(calls)],
  ['lost', ({ lost }) => String(lost)],
  ['repeated', ({ repeated }) => String(repeated)],
  ['run twice', ({ runTwice }) => String(runTwice)],
  ['hung', ({ hung }) => String(hung)],
  ['wrong', ({ wrong }) => String(wrong)],
  ['refused', ({ refused }) => (refused === null ? '–' : String(refused))],
  [
    'time to recover (p50 / worst)',
    ({ recoveryMs }) =>
      recoveryMs === null ? '–' : `${(recoveryMs.p50 / 1000).toFixed(1)} / ${(recoveryMs.worst / 1000).toFixed(1)} s`,
  ],
];

/** Markdown, columns aligned so that it reads in a terminal too. */
export function renderFaultTable(rows: readonly FaultRow[]): string {
  const cells = [COLUMNS.map(([title]) => title), ...rows.map((row) => COLUMNS.map(([, of]) => of(row)))];
  const widths = COLUMNS.map((_, column) => Math.max(3, ...cells.map((line) => line[column]?.length ?? 0)));
  const lines = cells.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

/** Whether no promise was broken. */
export function isKept({ lost, repeated, runTwice, hung, wrong }: FaultRow): boolean {
  return lost + repeated + runTwice + hung + wrong === 0;
}
