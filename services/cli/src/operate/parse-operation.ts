/** From the words and options of a command line to what an operator's command is asked for. */
import type { Fault } from '../faults.ts';
import type { CommandOptionName, Operation, OperationName } from './operations.ts';
import { commandOption } from './operations.ts';

/** Undefined: faults say why not. `words` are those behind the command's name. */
export function parseOperation(
  name: OperationName,
  words: readonly string[],
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): Operation | undefined {
  const before = faults.length;
  for (const option of options.keys()) {
    const { commands } = commandOption(option);
    if (!commands.includes(name))
      faults.push({ where: `--${option}`, problem: `is an option of ${commands.join(', ')}, not of ${name}.` });
  }
  const json = options.has('json');
  for (const extra of words.slice(WORDS[name] ?? 0)) faults.push({ where: extra, problem: 'is one word too many.' });
  const operation = build(name, json);
  return faults.length === before ? operation : undefined;
}

/** Words that a command takes behind its name. */
const WORDS: Partial<Record<OperationName, number>> = { inspect: 1 };

function build(name: OperationName, json: boolean): Operation | undefined {
  switch (name) {
    case 'topics apply':
      return { kind: 'topics', action: 'apply', json };
    case 'topics show':
      return { kind: 'topics', action: 'show', json };
    case 'topics diff':
      return { kind: 'topics', action: 'diff', json };
    default:
      return undefined;
  }
}
