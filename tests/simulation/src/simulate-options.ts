/** The options of `npm run simulate`. Pure. */
import { flag, jsonObject, names, wholeNumber } from '../../../infra/options/option.ts';
import type { CommandLine, ValuesOf } from '../../../infra/options/read-options.ts';
import type { PlanOptions } from './draw-plan.ts';
import { FAULTS } from './faults.ts';
import type { FaultName } from './faults.ts';

const OPTIONS = {
  seeds: wholeNumber({ takes: '<count>', says: 'how many runs (default 200)', from: 1, to: 999_999_999, absent: 200 }),
  from: wholeNumber({
    takes: '<seed>',
    says: 'the first seed (default 1); the others follow it',
    ...{ from: 1, to: 999_999_999, absent: 1 },
  }),
  jobs: wholeNumber({
    takes: '<count>',
    says: 'processes at once (default: one a core)',
    from: 1,
    to: 999,
    absent: null,
  }),
  stop: flag('end with the first seed that fails'),
  shrink: flag('make a short script of each seed that fails (of the first three), as a case for found-defects.test.ts'),
  faults: names(
    '<name>,…',
    'only these faults strike (default: what each seed draws)',
    Object.keys(FAULTS) as FaultName[],
  ),
  overrides: jsonObject(`fields of the plan, such as '{"gateways":3}'`, `'{"gateways":3}'`),
};

export const SIMULATE: CommandLine<typeof OPTIONS> = {
  command: 'npm run simulate',
  does: 'Runs the product in a simulated world, once a seed, and says which seeds broke a promise. Exit code 1 if any did.',
  options: OPTIONS,
};

/** No fault that is named: those that each seed draws. */
export function planOptions({ faults, overrides }: ValuesOf<typeof OPTIONS>): PlanOptions {
  return { ...(faults.length === 0 ? {} : { faults }), overrides };
}
