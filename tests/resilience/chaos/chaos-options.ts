/** The command line of `npm run chaos`: read whole, refused with what is wrong and what there is. */
import { parseArgs } from 'node:util';
import { errorText } from '@throughline/log';

export interface ChaosOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Names; empty: all. */
  readonly faults: readonly string[];
  /** Each once, in order, whatever the minutes. */
  readonly each: boolean;
  readonly write: boolean;
  readonly clients: number;
}

const USAGE =
  'Usage: npm run chaos -- [--minutes 5] [--seed <number>] [--fault <name>]… [--each] [--write] [--clients 50]';

/** Asked for with `--help`. */
export interface ChaosHelp {
  readonly help: string;
}

/** `randomSeed` counts without `--seed`. Returns what is wrong as text. */
export function parseChaosOptions(
  args: readonly string[],
  known: readonly string[],
  randomSeed: number,
): ChaosOptions | ChaosHelp | string {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        minutes: { type: 'string', default: '5' },
        seed: { type: 'string' },
        fault: { type: 'string', multiple: true, default: [] },
        each: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
        clients: { type: 'string', default: '50' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }));
  } catch (error) {
    return `${errorText(error)}\n${USAGE}`;
  }
  const faults = `Faults:\n  ${known.join('\n  ')}`;
  if (values.help)
    return {
      help:
        `${USAGE}\n\nInjects faults at random, some of them two at once, under clients on three brokers, and prints what came of\n` +
        `each. --each: every fault once, in order. --write: docs/reference/faults.md. Exit code 1 if a promise was broken.\n\n${faults}\n`,
    };
  const minutes = Number(values.minutes);
  const seed = values.seed === undefined ? randomSeed : Number(values.seed);
  const clients = Number(values.clients);
  const unknown = values.fault.filter((name) => !known.includes(name));
  const wrong = [
    ...(minutes > 0 && minutes <= 24 * 60 ? [] : [`--minutes ${values.minutes}: a number above 0, at most 1440`]),
    ...(Number.isSafeInteger(seed) && values.seed !== '' ? [] : [`--seed ${values.seed ?? ''}: a whole number`]),
    ...(Number.isSafeInteger(clients) && clients >= 1 && clients <= 500
      ? []
      : [`--clients ${values.clients}: a whole number from 1 to 500`]),
    ...(unknown.length === 0 ? [] : [`--fault ${unknown.join(', ')}: there is no such fault. ${faults}`]),
  ];
  if (wrong.length > 0) return `${wrong.join('\n')}\n${USAGE}`;
  return { minutes, seed, clients, faults: values.fault, each: values.each, write: values.write };
}
