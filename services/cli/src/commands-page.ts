/** docs/reference/commands.md, made from the command table. */
import { COMMAND_NAMES, COMMANDS } from './command-table.ts';
import { usageOf } from './help.ts';

export function renderCommandsPage(): string {
  const lines = [
    '# Commands and their exit codes',
    '',
    '`throughline help <command>` explains one with its options. Whatever the command: 0 is what a script wants to see, 1 is',
    'something outside of the configuration that was found or that failed, 2 is a command line or a configuration that is',
    'wrong. This page is made from `services/cli/src/command-table.ts`; a test fails when it has drifted.',
  ];
  for (const name of COMMAND_NAMES) {
    const { meaning, examples, exits } = COMMANDS[name];
    lines.push('', `## ${name}`, '', `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`, '');
    lines.push('```sh', ...examples, '```', '', `Usage: \`${usageOf(name)}\``, '');
    lines.push('| exit code | meaning |', '| --- | --- |', ...exits.map(([code, text]) => `| ${code} | ${text} |`));
  }
  return `${lines.join('\n')}\n`;
}
