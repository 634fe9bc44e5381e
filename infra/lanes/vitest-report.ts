/** What vitest's JSON reporter says, as counts. */
import type { Tally } from './tally.ts';

interface Report {
  readonly numPassedTests?: number;
  readonly numFailedTests?: number;
  readonly numPendingTests?: number;
  readonly numTodoTests?: number;
  readonly testResults?: readonly { readonly status?: string; readonly assertionResults?: readonly unknown[] }[];
}

/**
 * `exitCode` is vitest's own: it also fails on what no test counts (a file that does not load, an error after the
 * tests), and that must not pass. `text` is undefined if it wrote no report. `mayAllBeSkipped`: tests that need what a
 * machine may not have; where it has to have it, they fail by themselves.
 */
export function readVitestReport(
  text: string | undefined,
  exitCode: number,
  mayAllBeSkipped = false,
): { readonly tally: Tally; readonly note?: string } {
  const report = parse(text);
  if (report === undefined) return { tally: { passed: 0, failed: 1, skipped: 0 }, note: 'vitest wrote no report' };
  const tally: Tally = {
    passed: report.numPassedTests ?? 0,
    failed: report.numFailedTests ?? 0,
    skipped: (report.numPendingTests ?? 0) + (report.numTodoTests ?? 0),
  };
  const broken = (report.testResults ?? []).filter(
    ({ status, assertionResults }) => status === 'failed' && (assertionResults ?? []).length === 0,
  ).length;
  if (broken > 0)
    return { tally: { ...tally, failed: tally.failed + broken }, note: `${broken} test files did not load` };
  if (tally.failed === 0 && exitCode !== 0)
    return { tally: { ...tally, failed: 1 }, note: `vitest ended with code ${exitCode} although no test failed` };
  if (tally.passed + tally.failed > 0) return { tally };
  if (mayAllBeSkipped && tally.skipped > 0) return { tally, note: 'all skipped: there are no brokers' };
  return { tally: { ...tally, failed: 1 }, note: 'no test ran' };
}

function parse(text: string | undefined): Report | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Report;
  } catch {
    return undefined;
  }
}
