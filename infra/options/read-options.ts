/** A command line of this project's own commands, held against a table of options. `--help` is an option of all. */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { didYouMean } from 'throughline/nearest-name';
import { flag } from './option.ts';
import type { Option } from './option.ts';

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type ValuesOf<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never;
};

export interface CommandLine<T extends OptionTable> {
  /** As a person writes it, such as `npm run chaos`. */
  readonly command: string;
  /** One or more sentences: what it does. */
  readonly does: string;
  readonly options: T;
}

export type ReadOptions<T extends OptionTable> =
  { readonly values: ValuesOf<T> } | { readonly help: string } | { readonly wrong: string };

const HELP = flag('show this');

/** Pure. Everything that is wrong is said at once, each with its option, what to write and the nearest name. */
export function readOptions<T extends OptionTable>(line: CommandLine<T>, args: readonly string[]): ReadOptions<T> {
  const { options } = line;
  const known = [...Object.keys(options), 'help'];
  const given = new Map<string, string[]>();
  const faults: string[] = [];
  const { tokens } = parseArgs({
    ...{ args: [...args], strict: false, allowPositionals: true, tokens: true },
    options: { ...kindsOf(options), help: { type: 'boolean', short: 'h' } },
  });
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push(`${token.value}: every value follows its option.`);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const option = name === 'help' ? HELP : Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) {
      const nearest = didYouMean(
        `--${name}`,
        known.map((each) => `--${each}`),
      );
      faults.push(`${rawName}: there is no such option.${nearest}`);
    } else if (
      option.takes === null ? value !== undefined : value === undefined || isOption(value, token.inlineValue)
    ) {
      faults.push(
        option.takes === null ? `${rawName} takes no value.` : `${rawName} takes ${option.takes}, which is missing.`,
      );
    } else {
      given.set(name, [...(given.get(name) ?? []), value ?? '']);
    }
  }
  if (given.has('help')) return { help: usage(line) };
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const texts = given.get(name) ?? [];
    const reading = option.read(texts);
    if ('value' in reading) values[name] = reading.value;
    else faults.push(`--${name} ${texts.join(' ')}: ${reading.wrong}`);
  }
  if (faults.length > 0) return { wrong: `${faults.join('\n')}\n\n${usage(line)}` };
  return { values: values as ValuesOf<T> };
}

/** Prints help and ends the process with 0, or what is wrong and ends it with 2. */
export function optionsOrExit<T extends OptionTable>(line: CommandLine<T>, args: readonly string[]): ValuesOf<T> {
  const read = readOptions(line, args);
  if ('values' in read) return read.values;
  if ('help' in read) {
    process.stdout.write(read.help);
    process.exit(0);
  }
  process.stderr.write(read.wrong);
  process.exit(2);
}

function usage<T extends OptionTable>({ command, does, options }: CommandLine<T>): string {
  const all = Object.entries({ ...options, help: HELP });
  const rows = all.map(
    ([name, { takes, says }]) => [takes === null ? `--${name}` : `--${name} ${takes}`, says] as const,
  );
  const width = Math.max(...rows.map(([option]) => option.length));
  const lines = rows.map(([option, says]) => `  ${option.padEnd(width)}  ${says}`);
  return `Usage: ${command} [-- <options>]\n${does}\n\n${lines.join('\n')}\n`;
}

function kindsOf(options: OptionTable): Record<string, { readonly type: 'boolean' | 'string' }> {
  const kinds: Record<string, { readonly type: 'boolean' | 'string' }> = {};
  for (const [name, { takes }] of Object.entries(options))
    kinds[name] = { type: takes === null ? 'boolean' : 'string' };
  return kinds;
}

/** `--seeds --stop` is a value that was forgotten. */
function isOption(value: string, isInline: boolean): boolean {
  return !isInline && value.startsWith('--');
}
