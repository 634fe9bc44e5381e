/** `throughline --help`, and what `throughline help <command>` and `throughline <command> --help` say of one. Made from tables. */
import { COMMAND_NAMES, COMMANDS, commandsOfGroup, isCommandName } from './command-table.ts';
import type { CommandName } from './command-table.ts';
import { commandOption, optionsOf } from './command-options.ts';
import { CONFIG_FILE_OPTION, environmentName, OPTION_GROUPS, optionRow } from './option-table.ts';
import type { OptionName, OptionRow } from './option-table.ts';
import { formatFlag, namesOfGroup } from './option-text.ts';

const WIDTH = 100;
const INDENT = '      ';

/** `of`: a command, or the first word of several; anything else gets the general text. */
export function renderHelp(version: string, of: string | null = null): string {
  if (of !== null && isCommandName(of)) return renderCommand(of);
  const group = of === null ? [] : commandsOfGroup(of);
  return group.length > 0 ? renderGroup(group) : renderGeneral(version);
}

/** `throughline inspect <id> [options]`. */
export function usageOf(name: CommandName): string {
  const { words, user } = COMMANDS[name];
  const hasOptions = user !== null || optionsOf(name).length > 0;
  return ['throughline', name, ...(words === undefined ? [] : [words]), ...(hasOptions ? ['[options]'] : [])].join(' ');
}

function renderGeneral(version: string): string {
  return toText([
    `throughline ${version}: an MCP server whose sessions survive restarts`,
    '',
    'Usage: throughline <command> [options]',
    '',
    'Commands',
    ...listCommands(COMMAND_NAMES),
    '',
    'With no server configured, the demo server is served. Examples:',
    ...COMMANDS.serve.examples.map((example) => `  ${example}`),
    '',
    'Options of all commands that read a configuration',
    ...configFileLines(),
    '  -h, --help',
    `${INDENT}This text; behind a command, its options, an example and its exit codes.`,
    '  -v, --version',
    `${INDENT}The version.`,
    '',
    ...PLACES,
  ]);
}

function renderGroup(names: readonly CommandName[]): string {
  return toText([
    ...names.map((name, index) => `${index === 0 ? 'Usage: ' : '       '}${usageOf(name)}`),
    '',
    ...listCommands(names),
    '',
    `\`throughline help ${names[0] ?? ''}\` explains one of them.`,
  ]);
}

function renderCommand(name: CommandName): string {
  const { meaning, user, options, examples, exits } = COMMANDS[name];
  const lines = [`Usage: ${usageOf(name)}`, '', ...wrap(`${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`, '')];
  const own = optionsOf(name);
  if (own.length > 0) {
    lines.push('', 'Options of this command');
    for (const option of own) {
      const { placeholder, help } = commandOption(option);
      lines.push(`  --${option}${placeholder === undefined ? '' : ` <${placeholder}>`}`, ...wrap(help));
    }
  }
  lines.push('', 'Examples', ...examples.map((example) => `  ${example}`), '', 'Exit codes');
  const width = Math.max(...exits.map(([code]) => code.length));
  lines.push(...exits.map(([code, text]) => `  ${code.padEnd(width)}  ${text}`));
  if (user === null) return toText(lines);
  lines.push('', 'Configuration', ...configFileLines());
  if (options.length === 0)
    lines.push(...wrap('Takes the options of serve, gateway and worker: `throughline help serve` names them.', '  '));
  for (const group of OPTION_GROUPS) {
    const names = namesOfGroup(group).filter((option) => options.includes(option));
    if (names.length > 0) lines.push('', group, ...names.flatMap(optionLines));
  }
  if (options.length > 0) lines.push('', ...PLACES);
  return toText(lines);
}

function listCommands(names: readonly CommandName[]): string[] {
  const name = (each: CommandName): string => [each, COMMANDS[each].words ?? ''].join(' ').trimEnd();
  const width = Math.max(...names.map((each) => name(each).length));
  return names.map((each) => `  ${name(each).padEnd(width)}  ${COMMANDS[each].meaning}`);
}

function configFileLines(): string[] {
  return [
    `  --${CONFIG_FILE_OPTION.name} <${CONFIG_FILE_OPTION.placeholder}>`,
    ...wrap(`${CONFIG_FILE_OPTION.help} Default: ${CONFIG_FILE_OPTION.default}.`),
    `${INDENT}${environmentName(CONFIG_FILE_OPTION.name)}`,
  ];
}

const PLACES = [
  'Each option can also be set by the environment variable named with it and in throughline.yaml at the place named',
  'with it. Flags win over the environment, the environment over the file. Durations are written 500ms, 30s, 15m, 24h',
  'or 7d; sizes 65536, 512KiB or 4GiB.',
];

function optionLines(name: OptionName): string[] {
  const row = optionRow(name);
  return [
    `  ${row.isFlag === false ? '(no flag)' : formatFlag(name, row)}`,
    ...wrap(`${row.help}${formatDefault(row)}`),
    `${INDENT}${[environmentName(name), row.yaml].filter((place) => place !== null).join(' · ')}`,
  ];
}

function formatDefault(row: OptionRow): string {
  return row.default === null || row.kind === 'switch' ? '' : ` Default: ${row.default}.`;
}

function toText(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

function wrap(text: string, indent: string = INDENT): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > WIDTH) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? indent + word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}
