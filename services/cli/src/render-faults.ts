/** Faults as the user sees them: how many, of what, what each is, and where to read on. */
import { COMMANDS } from './command-table.ts';
import type { CommandName } from './command-table.ts';
import { faultText } from './faults.ts';
import type { Fault } from './faults.ts';

/** `asked`: the command that was given; null: none, or one that there is not. */
export function renderFaults(faults: readonly Fault[], asked: CommandName | null): string {
  const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  const user = asked === null ? null : COMMANDS[asked].user;
  // What starts something, or judges what would be started, is told most of it by its configuration.
  const head =
    user !== null && user !== 'operate'
      ? `${count} in the configuration; nothing was started.`
      : `${count} in ${asked === null ? 'the command line' : `\`${asked}\``}; nothing was done.`;
  const lines = faults.map((fault) => `  - ${faultText(fault)}`);
  const more =
    asked === null || asked === 'help' ? 'All commands: throughline help' : `Its options: throughline help ${asked}`;
  return [head, ...lines, more].join('\n');
}
