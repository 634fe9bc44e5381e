/** The table of a run, for a terminal and for a page. Pure. */
import { STEPS } from './judge.ts';
import type { Seen, Step } from './judge.ts';

export interface ClientRow {
  readonly name: string;
  readonly version: string;
  readonly seen: Readonly<Record<Step, Seen>>;
}

export interface SkippedRow {
  readonly name: string;
  readonly skipped: string;
}

export type InteropRow = ClientRow | SkippedRow;

/** Words for what is done in each step. */
export const DOES: Readonly<Record<Step, string>> = {
  initialize: 'connects through the load balancer',
  call: 'calls a tool that reports 5 steps',
  kill: 'calls a tool that reports 250 steps in 25 s, while each gateway in turn is killed (`kill -9`) and started again',
  drain: 'the same, while each gateway in turn is stopped as planned (SIGTERM) and started again',
  refusal: 'its connection is cut in mid-call, and the cursor with which it comes back cannot be continued',
  '404': 'its session has ended elsewhere before it calls',
};

export function isRowRight(row: InteropRow): boolean {
  return 'skipped' in row || STEPS.every((step) => row.seen[step].isRight);
}

/** One line a step. */
export function formatInteropTable(rows: readonly InteropRow[]): string {
  const lines: (readonly [client: string, version: string, step: string, seen: string])[] = [
    ['client', 'version', 'step', 'seen'],
  ];
  for (const row of rows) {
    if ('skipped' in row) lines.push([row.name, '-', 'skipped', row.skipped]);
    else
      for (const step of STEPS) {
        const { isRight, text } = row.seen[step];
        lines.push([row.name, row.version, step, isRight ? text : `WRONG: ${text}`]);
      }
  }
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The closing line of the command. */
export function formatInteropTally(rows: readonly InteropRow[]): string {
  const seen = rows.flatMap((row) => ('skipped' in row ? [] : STEPS.map((step) => row.seen[step])));
  const passed = seen.filter(({ isRight }) => isRight).length;
  const skipped = (rows.length - seen.length / STEPS.length) * STEPS.length;
  return `${passed} passed, ${seen.length - passed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;
}
