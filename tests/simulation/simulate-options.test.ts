import { describe, expect, it } from 'vitest';
import { readOptions } from '../../infra/options/read-options.ts';
import { planOptions, SIMULATE } from './src/simulate-options.ts';
import type { SeedReport } from './src/seed-report.ts';
import { tally } from './src/tally.ts';

const read = (...args: string[]): ReturnType<typeof planOptions> | string => {
  const options = readOptions(SIMULATE, args);
  if ('values' in options) return planOptions(options.values);
  return 'wrong' in options ? options.wrong : options.help;
};

describe('the options of simulate', () => {
  it('[SIM-OPTIONS] are read', () => {
    const args = ['--seeds', '500', '--from', '7', '--faults', 'half-open', '--shrink'];
    expect(readOptions(SIMULATE, args)).toEqual({
      values: { seeds: 500, from: 7, jobs: null, stop: false, shrink: true, faults: ['half-open'], overrides: {} },
    });
    expect(read()).toEqual({ overrides: {} });
    expect(read('--faults', 'half-open,retention', '--overrides', '{"gateways":3}')).toEqual({
      faults: ['half-open', 'retention'],
      overrides: { gateways: 3 },
    });
  });

  it('[SIM-OPTIONS] are refused with what to write instead', () => {
    expect(read('--seeds', '0')).toContain('--seeds 0: must be a whole number from 1, at most 999999999\n');
    expect(read('--from', 'x')).toContain('--from x: must be a whole number from 1');
    expect(read('--jobs', '1.5')).toContain('--jobs 1.5: must be a whole number from 1');
    expect(read('--faults', 'half-open,earthquake')).toContain('there is no "earthquake"; there are: ');
    expect(read('--overrides', '[1]')).toContain(`--overrides [1]: must be a JSON object, such as '{"gateways":3}'`);
    expect(read('--sed', '1')).toContain('--sed: there is no such option. Did you mean --seeds?');
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
