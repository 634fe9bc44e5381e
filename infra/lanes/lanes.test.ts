import { format } from 'prettier';
import { describe, expect, it } from 'vitest';
import { readOptions } from '../options/read-options.ts';
import { chooseParts, partOptions } from './choose-parts.ts';
import { mergeParts, readDeepParts, readSections, renderDeepResult } from './deep-result.ts';
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

describe('the page of a deep lane', () => {
  const machine = { cores: 2, memoryBytes: 8 * 1024 ** 3, node: 'v24.0.0' };
  const parts = [
    { name: 'check', commit: 'abc', ms: 60_000, passed: 6, failed: 0, skipped: 0 },
    { name: 'e2e', commit: 'abc and changes', ms: 120_000, passed: 10, failed: 1, skipped: 2, note: 'why' },
  ];

  it('[CLI-LANE] names date, machine, and each part with its commit, minutes and counts', () => {
    const text = renderDeepResult({ date: '2026-01-31', machine, parts });
    expect(text).toContain('# Deep lane, 2026-01-31\n');
    expect(text).toContain('- Machine: 2 cores, 8.0 GiB memory, Node v24.0.0\n');
    expect(text).toContain('- Result: 16 passed, 1 failed, 2 skipped, in 3.0 minutes\n');
    expect(text).toContain('| e2e | abc and changes | 2.0 | 10 | 1 | 2 | why |\n');
  });

  it('[CLI-LANE] keeps the parts that did not run this time, in their form after prettier as well', async () => {
    const page = await format(renderDeepResult({ date: '2026-01-31', machine, parts }), { parser: 'markdown' });
    expect(readDeepParts(page)).toEqual(parts);
    const [check, e2e] = parts;
    const again = { name: 'e2e', commit: 'def', ms: 1, passed: 11, failed: 0, skipped: 0 };
    const unit = { name: 'unit', commit: 'def', ms: 1, passed: 5, failed: 0, skipped: 0 };
    expect(mergeParts(readDeepParts(page), [again, unit])).toEqual([check, again, unit]);
    expect(readDeepParts('# Another page\n\n| a | b |\n')).toEqual([]);
    expect(e2e?.failed).toBe(1);
  });

  it('[CLI-LANE] keeps what people wrote below the table', async () => {
    const sections = '## What was seen\n\nTwo failed.\n\n## By hand\n\nNothing.\n';
    const page = await format(renderDeepResult({ date: '2026-01-31', machine, parts, sections }), {
      parser: 'markdown',
    });
    expect(readSections(page)).toBe(sections);
    expect(readDeepParts(page)).toEqual(parts);
    expect(readSections(renderDeepResult({ date: '2026-01-31', machine, parts }))).toBe('');
  });
});

describe('chooseParts', () => {
  const parts = [{ name: 'check' }, { name: 'unit' }, { name: 'e2e' }];

  const choose = (...args: string[]): unknown => {
    const read = readOptions({ command: 'npm test', does: 'Tests.', options: partOptions(parts) }, args);
    return 'values' in read ? chooseParts(parts, read.values.only) : read;
  };

  it('[CLI-LANE] all without --only, else those that are named, in the order of the lane', () => {
    expect(choose()).toEqual(parts);
    expect(choose('--only', 'e2e,check')).toEqual([{ name: 'check' }, { name: 'e2e' }]);
  });

  it('[CLI-LANE] what is no part or no option is refused with the parts there are', () => {
    for (const args of [['--only', 'units'], ['--fast'], ['unit'], ['--only']])
      expect(choose(...args)).toEqual({ wrong: expect.stringContaining(': check, unit, e2e\n') as unknown });
  });
});
