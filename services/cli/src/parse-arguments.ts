/** The command line: a command, and options as text. Whether a value is right is decided later, with all the others. */
import { COMMAND_NAMES, commandsOfGroup, isCommandName } from './command-table.ts';
import type { CommandName } from './command-table.ts';
import type { Fault } from './faults.ts';
import { didYouMean } from './nearest-name.ts';
import { commandOption, COMMAND_OPTION_NAMES, isCommandOption } from './command-options.ts';
import type { CommandOptionName } from './command-options.ts';
import type { ConnectLine } from './connect/connect-request.ts';
import { parseConnect } from './connect/parse-connect.ts';
import { isOperationName } from './operate/operations.ts';
import type { Operation, OperationName } from './operate/operations.ts';
import { parseOperation } from './operate/parse-operation.ts';
import { CONFIG_FILE_OPTION, isOptionName, OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, OptionUser, Role } from './option-table.ts';

export type Command =
  /** `of`: a command or the first word of several; null: what there is. */
  | { readonly name: 'help'; readonly of: string | null }
  /** None that could be run: the faults say why. */
  | { readonly name: 'faulty' }
  | { readonly name: 'version' }
  | { readonly name: 'run'; readonly role: Role }
  | { readonly name: 'operate'; readonly operation: Operation }
  | { readonly name: 'connect'; readonly line: ConnectLine }
  | { readonly name: 'config-check' }
  | { readonly name: 'config-print' }
  | { readonly name: 'secret-new' }
  | { readonly name: 'secret-hash' };

export interface Arguments {
  readonly command: Command;
  /** What was asked for, also where it could not be understood; null: no command that there is. */
  readonly asked: CommandName | null;
  readonly options: ReadonlyMap<OptionName, string>;
  readonly configFile: string | undefined;
  readonly faults: readonly Fault[];
}

/** Those that take no words and no options of their own. */
const PLAIN: { readonly [C in Exclude<CommandName, OperationName | 'connect' | 'help'>]: Command } = {
  serve: { name: 'run', role: 'serve' },
  gateway: { name: 'run', role: 'gateway' },
  worker: { name: 'run', role: 'worker' },
  'config check': { name: 'config-check' },
  'config print': { name: 'config-print' },
  'secret new': { name: 'secret-new' },
  'secret hash': { name: 'secret-hash' },
};

const FLAG_NAMES: readonly string[] = [
  ...OPTION_NAMES.filter((name) => optionRow(name).isFlag !== false),
  ...COMMAND_OPTION_NAMES,
  CONFIG_FILE_OPTION.name,
  'help',
  'version',
];

export function parseArguments(argv: readonly string[]): Arguments {
  const words: string[] = [];
  const faults: Fault[] = [];
  const options = new Map<OptionName, string>();
  const commandOptions = new Map<CommandOptionName, string>();
  let configFile: string | undefined;
  let wanted: 'help' | 'version' | undefined;

  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? '';
    if (word === '-h') wanted = 'help';
    else if (word === '-v') wanted ??= 'version';
    else if (!word.startsWith('-')) words.push(word);
    else if (!word.startsWith('--')) faults.push({ where: word, problem: `no such option.${quotesHint(options)}` });
    else {
      const equals = word.indexOf('=');
      const name = word.slice(2, equals === -1 ? undefined : equals);
      const inline = equals === -1 ? undefined : word.slice(equals + 1);
      if (name === 'help' || name === 'version') {
        wanted = wanted === 'help' ? 'help' : name;
        continue;
      }
      const negated = name.startsWith('no-') ? name.slice(3) : undefined;
      if (negated !== undefined && isOptionName(negated) && optionRow(negated).kind === 'switch') {
        set(negated, inline === undefined ? 'false' : 'with a value');
        continue;
      }
      if (isCommandOption(name) && commandOption(name).placeholder === undefined) {
        if (inline === undefined) commandOptions.set(name, 'true');
        else faults.push({ where: `--${name}`, problem: 'takes no value.' });
        continue;
      }
      if (
        name !== CONFIG_FILE_OPTION.name &&
        !isCommandOption(name) &&
        (!isOptionName(name) || optionRow(name).isFlag === false)
      ) {
        faults.push({ where: `--${name}`, problem: unknownOption(name) });
        // What follows is most likely its value, not a word of the command.
        if (inline === undefined && argv[index + 1]?.startsWith('-') === false) index++;
        continue;
      }
      if (isOptionName(name) && optionRow(name).kind === 'switch') {
        set(name, inline ?? 'true');
        continue;
      }
      const next = argv[index + 1];
      const value = inline ?? (next === undefined || next.startsWith('--') ? undefined : next);
      if (value === undefined) {
        faults.push({ where: `--${name}`, problem: `needs a value; write --${name}=<${placeholderOf(name)}>.` });
        continue;
      }
      if (inline === undefined) index++;
      if (isOptionName(name)) set(name, value);
      else if (isCommandOption(name)) {
        const before = commandOptions.get(name);
        if (before !== undefined && commandOption(name).isList !== true)
          faults.push({ where: `--${name}`, problem: 'is given twice.' });
        commandOptions.set(name, before === undefined ? value : `${before}\n${value}`);
      } else if (configFile !== undefined) faults.push({ where: '--config', problem: 'is given twice.' });
      else configFile = value;
    }
  }

  if (wanted === 'version') return { command: { name: 'version' }, asked: null, options, configFile, faults: [] };
  if (wanted === 'help') {
    const of = helpTopic(words[0] === 'help' ? words.slice(1) : words);
    return { command: { name: 'help', of }, asked: 'help', options, configFile, faults: [] };
  }
  const asked = askedFor(words);
  const command = findCommand(asked, words, faults, options, commandOptions);
  if (command.name === 'run') checkRole(command.role, options, faults);
  if (command.name === 'operate') checkRole('operate', options, faults);
  return { command, asked, options, configFile, faults };

  function set(name: OptionName, value: string): void {
    const before = options.get(name);
    if (before === undefined) options.set(name, value);
    else if (optionRow(name).kind === 'list') options.set(name, `${before},${value}`);
    else faults.push({ where: `--${name}`, problem: 'is given twice.' });
  }
}

/** One word or two: only commands of two words have a first word that is none by itself. */
function askedFor(words: readonly string[]): CommandName | null {
  const text = words.slice(0, lengthOf(words)).join(' ');
  return isCommandName(text) ? text : null;
}

function lengthOf([first]: readonly string[]): 1 | 2 {
  return first !== undefined && commandsOfGroup(first).length > 0 ? 2 : 1;
}

/** Null: the words name no command, nor the beginning of one. */
function helpTopic(words: readonly string[]): string | null {
  const [first] = words;
  if (first === undefined) return null;
  return askedFor(words) ?? (commandsOfGroup(first).length > 0 ? first : null);
}

function findCommand(
  asked: CommandName | null,
  words: readonly string[],
  faults: Fault[],
  options: ReadonlyMap<OptionName, string>,
  commandOptions: ReadonlyMap<CommandOptionName, string>,
): Command {
  if (words.length === 0) {
    faults.push({ where: 'command', problem: `none is given; it is one of: ${COMMAND_NAMES.join(', ')}.` });
    return { name: 'faulty' };
  }
  const length = lengthOf(words);
  const more = words.slice(length);
  if (asked !== null && isOperationName(asked)) {
    const operation = parseOperation(asked, more, commandOptions, faults);
    return operation === undefined ? { name: 'faulty' } : { name: 'operate', operation };
  }
  if (asked === 'connect') {
    for (const option of options.keys())
      faults.push({ where: `--${option}`, problem: 'is no option of connect; leave it out.' });
    const line = parseConnect(more, commandOptions, faults);
    return line === undefined || faults.length > 0 ? { name: 'faulty' } : { name: 'connect', line };
  }
  for (const option of commandOptions.keys())
    faults.push({ where: `--${option}`, problem: `is an option of ${commandOption(option).commands.join(', ')}.` });
  if (asked === 'help') return findHelp(more, faults);
  for (const extra of more) faults.push({ where: extra, problem: `is one word too many.${quotesHint(options)}` });
  if (asked !== null) return PLAIN[asked];
  pushUnknown(words.slice(0, length).join(' '), faults);
  return { name: 'faulty' };
}

function findHelp(words: readonly string[], faults: Fault[]): Command {
  const of = helpTopic(words);
  if (of === null && words.length > 0) pushUnknown(words.join(' '), faults);
  else if (of !== null && words.length > 1 && words.join(' ') !== of) pushUnknown(words.join(' '), faults);
  return faults.length > 0 ? { name: 'faulty' } : { name: 'help', of };
}

function pushUnknown(text: string, faults: Fault[]): void {
  const nearest = didYouMean(text, COMMAND_NAMES);
  faults.push({ where: text, problem: `is no command; it is one of: ${COMMAND_NAMES.join(', ')}.${nearest}` });
}

function checkRole(role: OptionUser, options: ReadonlyMap<OptionName, string>, faults: Fault[]): void {
  for (const name of options.keys()) {
    const { roles } = optionRow(name);
    if (roles === undefined || roles.includes(role)) continue;
    faults.push({
      where: `--${name}`,
      problem: `is an option of ${roles.map(nameUser).join(' and ')}, not of ${nameUser(role)}; leave it out.`,
    });
  }
}

function nameUser(user: OptionUser): string {
  return user === 'operate' ? "the operator's commands" : user;
}

function unknownOption(name: string): string {
  if (isOptionName(name))
    return `cannot be given on the command line, where other users can read it; use the environment, the file or --${name}-file.`;
  return `no such option.${didYouMean(
    `--${name}`,
    FLAG_NAMES.map((known) => `--${known}`),
  )}`;
}

/** The commonest slip: a command line without quotes. */
function quotesHint(options: ReadonlyMap<OptionName, string>): string {
  return options.has('stdio') ? ' If it belongs to the command of --stdio, put the whole command in quotes.' : '';
}

function placeholderOf(name: string): string {
  if (isOptionName(name)) return optionRow(name).placeholder ?? 'value';
  return isCommandOption(name) ? (commandOption(name).placeholder ?? 'value') : CONFIG_FILE_OPTION.placeholder;
}
