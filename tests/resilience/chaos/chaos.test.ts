import { createSeededRandom } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../infra/options/read-options.ts';
import { noCounts } from '../crowd/tally.ts';
import type { Fault } from '../faults/fault.ts';
import type { FaultRun } from '../faults/run-fault.ts';
import { CHAOS } from './chaos-options.ts';
import { drawFaults } from './draw-faults.ts';
import { isKept, renderFaultTable } from './fault-table.ts';
import { renderFaultsPage } from './faults-page.ts';
import { foundLater, rowsOf } from './rows.ts';

const parse = (...args: string[]): object => readOptions(CHAOS, args);

describe('the options of npm run chaos', () => {
  it('[FLT-CHAOS] without any: five minutes, 50 clients, all faults, a seed of its own', () => {
    expect(parse()).toEqual({
      values: { minutes: 5, seed: null, clients: 50, fault: [], each: false, write: false },
    });
    expect(
      parse(
        '--minutes',
        '0.5',
        '--seed',
        '7',
        '--fault',
        'broker paused',
        '--fault',
        'worker killed',
        '--each',
        '--write',
      ),
    ).toEqual({
      values: {
        minutes: 0.5,
        seed: 7,
        clients: 50,
        fault: ['broker paused', 'worker killed'],
        each: true,
        write: true,
      },
    });
  });

  it('[FLT-CHAOS] what is wrong is named, all at once, with what there is', () => {
    const { wrong } = parse('--minutes', '0', '--seed', 'x', '--fault', 'worker kiled', '--clients', '1.5') as {
      wrong: string;
    };
    expect(wrong).toContain('--minutes 0: must be a number above 0, at most 1440\n');
    expect(wrong).toContain('--seed x: must be a whole number from 0\n');
    expect(wrong).toContain('--clients 1.5: must be a whole number from 1, at most 500\n');
    expect(wrong).toContain('--fault worker kiled: there is no "worker kiled"; there are: ');
    expect(wrong).toContain('. Did you mean worker killed?\n');
  });

  it('[FLT-CHAOS] --help names the options and the faults', () => {
    const { help = '' } = parse('--help') as { help?: string };
    for (const part of ['Usage: npm run chaos', '--each', 'worker killed', 'broker paused'])
      expect(help).toContain(part);
  });
});

describe('drawFaults', () => {
  const fault = (name: string, isCombinable: boolean): Fault => ({
    ...{ name, does: '', mayTell: [], isCombinable, run: () => Promise.resolve() },
  });

  it('[FLT-CHAOS] each fault comes before any comes again, some together with another, and a seed repeats', () => {
    const faults = [fault('a', true), fault('b', true), fault('c', false), fault('d', false)];
    const draw = (seed: number): string[] => {
      const draws = drawFaults(faults, createSeededRandom(seed));
      return Array.from({ length: 40 }, () =>
        draws
          .next()
          .value.map(({ name }) => name)
          .join('+'),
      );
    };
    const names = draw(5);
    for (let round = 0; round < 40; round += 4)
      expect(
        names
          .slice(round, round + 4)
          .map((name) => name[0])
          .sort(),
      ).toEqual(['a', 'b', 'c', 'd']);
    expect(names).toContain('a+b');
    expect(names.some((name) => /[cd]\+|\+[cd]/.test(name))).toBe(false);
    expect(draw(5)).toEqual(names);
    expect(draw(6)).not.toEqual(names);
  });
});

const run = (name: string, fields: Partial<FaultRun> = {}): FaultRun => ({
  ...{ name, findings: [], untold: [], recoveries: [0, 1000, 3000], silence: { p50Ms: 0, worstMs: 0 } },
  counts: { ...noCounts(), calls: 10 },
  ...fields,
});

describe('the table of faults', () => {
  it('[FLT-TABLE] a row a fault: runs and calls in sum, broken promises by kind, refusals apart, recovery over all clients', () => {
    const rows = rowsOf([
      run('a', { counts: { ...noCounts(), calls: 3, ownerLost: 2, sessionsEnded: 1, unanswered: 1 } }),
      run('b', {
        findings: [
          { kind: 'lost', what: '' },
          { kind: 'run twice', what: '' },
          { kind: 'hung', what: '' },
          { kind: 'repeated', what: '' },
          { kind: 'wrong', what: '' },
        ],
        untold: ['owner lost'],
      }),
      run('a', { recoveries: [9000, 9000] }),
    ]);
    expect(rows).toEqual([
      {
        ...{ fault: 'a', runs: 2, calls: 13, refused: 4, lost: 0, repeated: 0, runTwice: 0, hung: 0, wrong: 0 },
        recoveryMs: { p50: 3000, worst: 9000 },
      },
      {
        ...{ fault: 'b', runs: 1, calls: 10, refused: 0, lost: 1, repeated: 1, runTwice: 1, hung: 1, wrong: 2 },
        recoveryMs: { p50: 1000, worst: 3000 },
      },
    ]);
    expect(rows.map(isKept)).toEqual([true, false]);
    const [later] = rowsOf([foundLater([{ kind: 'lost', what: '' }])]);
    expect(later).toMatchObject({ fault: 'found later', lost: 1 });
  });

  it('[FLT-TABLE] its columns, and what was not measured', () => {
    const row = { ...{ runs: 1, calls: 2, lost: 0, repeated: 0, runTwice: 0, hung: 0, wrong: 0, refused: null } };
    expect(renderFaultTable([{ fault: 'a', ...row, recoveryMs: null }])).toBe(
      [
        '| fault | runs | calls | lost | repeated | run twice | hung | wrong | refused | time to recover (p50 / worst) |',
        '| ----- | ---- | ----- | ---- | -------- | --------- | ---- | ----- | ------- | ----------------------------- |',
        '| a     | 1    | 2     | 0    | 0        | 0         | 0    | 0     | –       | –                             |',
      ].join('\n'),
    );
    expect(renderFaultTable([{ fault: 'a', ...row, recoveryMs: { p50: 1234, worst: 5678 } }])).toContain('1.2 / 5.7 s');
  });

  it('[FLT-TABLE] the page has date, commit, machine, versions, command, the table, and a sentence a fault that happened', () => {
    const facts = {
      ...{ date: '2026-01-31', commit: 'abc', machine: '2 cores', versions: 'Node v1', clients: 50 },
      command: 'npm run chaos -- --each --seed 1',
    };
    const fault = (name: string): Fault => ({ name, does: `Does ${name}.`, mayTell: [], run: () => Promise.resolve() });
    const [a, b, c] = [fault('a'), fault('b'), fault('c')] as const;
    const text = renderFaultsPage({
      ...{ facts, rows: rowsOf([run('a')]), faults: [a, b, c], calls: 5 },
      skipped: [{ fault: c, why: 'no root' }],
    });
    const parts = [
      '2026-01-31',
      'Commit: abc',
      '2 cores',
      'Node v1',
      '--each --seed 1 --write',
      '| a ',
      '**a**: Does a.',
    ];
    for (const part of [...parts, '**c**: no root']) expect(text).toContain(part);
    expect(text).not.toContain('Does b.');
  });
});
