/** The options of `npm run chaos`. Pure. */
import { flag, names, numberAbove, wholeNumber } from '../../../infra/options/option.ts';
import type { CommandLine, ValuesOf } from '../../../infra/options/read-options.ts';
import { FAULTS } from '../faults/catalogue.ts';

const OPTIONS = {
  minutes: numberAbove({ takes: '<minutes>', says: 'how long (default 5)', from: 0, to: 24 * 60, absent: 5 }),
  seed: wholeNumber({
    takes: '<number>',
    says: 'draws the same faults again (default: one of its own, which is printed)',
    ...{ from: 0, absent: null },
  }),
  clients: wholeNumber({ takes: '<count>', says: 'at once (default 50)', from: 1, to: 500, absent: 50 }),
  each: flag('every fault once, in order, whatever the minutes'),
  write: flag('write docs/reference/faults.md'),
  fault: names(
    '<name>',
    'only this fault, or these if given several times (default: all)',
    FAULTS.map(({ name }) => name),
  ),
};

export interface ChaosOptions extends ValuesOf<typeof OPTIONS> {
  readonly seed: number;
}

export const CHAOS: CommandLine<typeof OPTIONS> = {
  command: 'npm run chaos',
  does:
    'Injects faults at random, some of them two at once, under clients on three brokers, and prints what came of each.\n' +
    'Exit code 1 if a promise was broken.',
  options: OPTIONS,
};
