import { describe, expect, it } from 'vitest';
import { renderDeepResult } from './deep-result.ts';
import { runCommand } from './run-command.ts';
import { addUp, exitCodeOf, formatParts, formatTally } from './tally.ts';
import { readVitestReport } from './vitest-report.ts';

const report = (fields: object): string => JSON.stringify(fields);

describe('tally', () => {
  it('[CLI-LANE] the last line names passed and failed, and skipped only if there are any', () => {
    expect(formatTally({ passed: 12, failed: 0, skipped: 0 })).toBe('12 passed, 0 failed');
    expect(formatTally({ passed: 12, failed: 3, skipped: 1 })).toBe('12 passed, 3 failed, 1 skipped');
    expect(
      addUp([
        { passed: 1, failed: 2, skipped: 3 },
        { passed: 10, failed: 20, skipped: 30 },
      ]),
    ).toEqual({ passed: 11, failed: 22, skipped: 33 });
  });

  it('[CLI-LANE] a lane fails on one failed test, and if nothing passed', () => {
    expect(exitCodeOf([{ passed: 5, failed: 0, skipped: 1 }])).toBe(0);
    expect(
      exitCodeOf([
        { passed: 5, failed: 0, skipped: 0 },
        { passed: 0, failed: 1, skipped: 0 },
      ]),
    ).toBe(1);
    expect(exitCodeOf([{ passed: 0, failed: 0, skipped: 9 }])).toBe(1);
  });

  it('[CLI-LANE] each part is shown with its minutes and counts', () => {
    const text = formatParts([
      { name: 'check', ms: 90_000, passed: 6, failed: 0, skipped: 0 },
      { name: 'e2e', ms: 3000, passed: 0, failed: 1, skipped: 0, note: 'no test ran' },
    ]);
    expect(text).toBe('  check     1.5 min  6 passed, 0 failed\n  e2e       0.1 min  0 passed, 1 failed (no test ran)');
  });
});

describe('readVitestReport', () => {
  it('[CLI-LANE] counts are those of the report', () => {
    const text = report({ numPassedTests: 7, numFailedTests: 2, numPendingTests: 1, numTodoTests: 1, testResults: [] });
    expect(readVitestReport(text, 1)).toEqual({ tally: { passed: 7, failed: 2, skipped: 2 } });
  });

  it('[CLI-LANE] no report, a file that does not load, an error outside of tests and no test at all are failures', () => {
    expect(readVitestReport(undefined, 0).tally.failed).toBe(1);
    expect(readVitestReport('{', 0).tally.failed).toBe(1);
    const broken = [{ status: 'failed', assertionResults: [] }];
    expect(readVitestReport(report({ numPassedTests: 7, numFailedTests: 0, testResults: broken }), 1)).toEqual({
      tally: { passed: 7, failed: 1, skipped: 0 },
      note: '1 test files did not load',
    });
    expect(readVitestReport(report({ numPassedTests: 7, numFailedTests: 0 }), 1).tally.failed).toBe(1);
    expect(readVitestReport(report({ numPassedTests: 0, numPendingTests: 4 }), 0).tally).toEqual({
      passed: 0,
      failed: 1,
      skipped: 4,
    });
  });

  it('[CLI-LANE] tests that need brokers may all be skipped, which is counted and said', () => {
    const skipped = report({ numPassedTests: 0, numFailedTests: 0, numPendingTests: 4 });
    expect(readVitestReport(skipped, 0, true)).toEqual({
      tally: { passed: 0, failed: 0, skipped: 4 },
      note: 'all skipped: there are no brokers',
    });
    expect(readVitestReport(skipped, 1, true).tally.failed).toBe(1);
    expect(readVitestReport(report({ numPassedTests: 0, numFailedTests: 0 }), 0, true).tally.failed).toBe(1);
  });
});

describe('runCommand', () => {
  const node = (script: string): string[] => [process.execPath, '-e', script];

  it('[CLI-LANE] a command ends with its own code', async () => {
    expect(await runCommand(node('process.exit(7)'), { deadlineMs: 20_000 })).toBe(7);
    expect(await runCommand(['/no/such/command'], { deadlineMs: 20_000 })).toBe(127);
  });

  it('[CLI-LANE] a command that hangs is ended by its deadline', async () => {
    expect(await runCommand(node('setInterval(() => {}, 1000)'), { deadlineMs: 300 })).toBe(124);
  });
});

describe('renderDeepResult', () => {
  it('[CLI-LANE] the result file names date, commit, machine, and each part with minutes and counts', () => {
    const text = renderDeepResult({
      date: '2026-01-31',
      commit: 'abc',
      machine: { cores: 2, memoryBytes: 8 * 1024 ** 3, node: 'v24.0.0' },
      results: [
        { name: 'check', ms: 60_000, passed: 6, failed: 0, skipped: 0 },
        { name: 'e2e', ms: 120_000, passed: 10, failed: 1, skipped: 2, note: 'why' },
      ],
    });
    expect(text).toContain('# Deep lane, 2026-01-31\n');
    expect(text).toContain('- Commit: abc\n');
    expect(text).toContain('- Machine: 2 cores, 8.0 GiB memory, Node v24.0.0\n');
    expect(text).toContain('- Result: 16 passed, 1 failed, 2 skipped, in 3.0 minutes\n');
    expect(text).toContain('| e2e | 2.0 | 10 | 1 | 2 | why |\n');
  });
});
