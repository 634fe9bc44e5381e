import { describe, expect, it } from 'vitest';
import { readSimulateOptions } from './src/simulate-options.ts';
import type { SeedReport } from './src/seed-report.ts';
import { tally } from './src/tally.ts';

const wrong = (...args: string[]): string => {
  const options = readSimulateOptions(args);
  return typeof options === 'string' ? options : `taken as ${JSON.stringify(options)}`;
};

describe('the options of simulate', () => {
  it('[SIM-OPTIONS] are read', () => {
    expect(readSimulateOptions(['--seeds', '500', '--from', '7', '--faults', 'half-open', '--shrink'])).toEqual({
      ...{ seeds: 500, from: 7, jobs: null, stop: false, shrink: true },
      plan: { faults: ['half-open'] },
    });
  });

  it('[SIM-OPTIONS] are refused with what to write instead', () => {
    expect(wrong('--seeds', '0')).toBe('--seeds must be a whole number from 1, such as --seeds 1000; it is "0".\n');
    expect(wrong('--from', 'x')).toContain('--from must be a whole number from 1');
    expect(wrong('--jobs', '1.5')).toContain('--jobs must be a whole number from 1');
    expect(wrong('--faults', 'half-open,earthquake')).toContain('--faults names earthquake, which is no fault. Known:');
    expect(wrong('--overrides', '[1]')).toContain('--overrides must be a JSON object');
    expect(wrong('--sed', '1')).toContain('Usage: npm run simulate');
  });
});

describe('the table of many runs', () => {
  const report = (seed: number, fields: Partial<SeedReport>): SeedReport => ({
    ...{ seed, faults: [], findings: [], calls: 10, events: 100, refused: 0, strikes: [] },
    ...fields,
  });

  it('[SIM-OPTIONS] counts a run in the row of each fault that struck in it, and once in the last row', () => {
    const rows = tally([
      report(1, {
        strikes: [
          { fault: 'half-open', recoveredMs: 50 },
          { fault: 'half-open', recoveredMs: 900 },
          { fault: 'retention', recoveredMs: null },
        ],
        findings: [
          { rule: 'SIM-ONCE', what: '' },
          { rule: 'SIM-CAUSE', what: '' },
        ],
      }),
      report(2, { strikes: [{ fault: 'half-open', recoveredMs: 70 }], refused: 3 }),
      report(3, {}),
    ]);
    expect(rows.map(({ fault, runs, calls, runTwice, wrong: bad }) => [fault, runs, calls, runTwice, bad])).toEqual([
      ['half-open', 2, 20, 1, 1],
      ['retention', 1, 10, 1, 1],
      ['(none struck)', 1, 10, 0, 0],
      ['all runs', 3, 30, 1, 1],
    ]);
    expect(rows.map(({ recoveryMs }) => recoveryMs)).toEqual([
      { p50: 70, worst: 900 },
      null,
      null,
      { p50: 70, worst: 900 },
    ]);
  });
});
