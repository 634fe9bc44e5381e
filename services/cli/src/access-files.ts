/** Tokens and secrets: from the options that name or hold them to what the gateway takes. */
import { statSync } from 'node:fs';
import path from 'node:path';
import type { AccessChange } from '@throughline/gateway';
import { contentLines, parseSecrets, parseTokens } from './auth-tokens.ts';
import { readTextFile } from './read-text-file.ts';
import type { Fault } from './faults.ts';
import { fileProblem } from './file-problem.ts';
import type { Layer } from './layers.ts';
import { optionRow } from './option-table.ts';
import type { OptionName, OPTIONS } from './option-table.ts';
import { describeValue } from './resolve-options.ts';
import type { ResolvedOptions } from './resolve-options.ts';

type NamedFileOption = {
  [N in OptionName]: (typeof OPTIONS)[N] extends { readonly isPath: true } ? N : never;
}[OptionName];

/** A file that is read again while a gateway runs. */
export interface AccessFile {
  /** What names it, for logs. */
  readonly where: string;
  /** With its folder. */
  readonly file: string;
  /** What stood there at the start. */
  readonly text: string;
  /** What is to be used instead, unless there are problems; none holds what stands in the file. */
  parse(text: string): { readonly change: AccessChange; readonly problems: readonly string[] };
}

/** Files are told to `files`, unless they are pipes, which hold what they held once. */
export function followRegular(entry: AccessFile, files: AccessFile[]): void {
  if (statSync(entry.file, { throwIfNoEntry: false })?.isFile() === true) files.push(entry);
}

interface Reading {
  readonly layer: Layer;
  readonly options: ResolvedOptions;
  readonly cwd: string;
  readonly faults: Fault[];
  /** Those to read again. */
  readonly files: AccessFile[];
}

export function readTokens({
  layer,
  options,
  cwd,
  faults,
  files,
}: Reading): ReturnType<typeof parseTokens>['tokens'] | null {
  const name = 'auth-tokens-file';
  const text = readNamedFile(name, layer, options, cwd, faults);
  if (text === undefined) return null;
  const parse = (held: string) => {
    const { tokens, problems } = parseTokens(held);
    return { change: { kind: 'tokens', tokens } as const, problems };
  };
  const { change, problems } = parse(text);
  pushProblems(name, problems, layer, faults);
  followNamed(name, text, { layer, options, cwd, files }, parse);
  return change.tokens;
}

export function readSecrets({ layer, options, cwd, faults, files }: Reading): readonly Uint8Array[] | null {
  const [chosen] = chooseOne(['secrets', 'secrets-file'] as const, layer, faults);
  if (chosen === undefined) return null;
  if (chosen === 'secrets') {
    if (options.secrets === undefined) return null;
    const { secrets, problems } = parseSecrets(options.secrets);
    pushProblems(chosen, problems, layer, faults);
    return secrets;
  }
  const text = readNamedFile(chosen, layer, options, cwd, faults);
  if (text === undefined) return null;
  const parse = (held: string) => {
    const { secrets, problems } = parseSecretsFile(held);
    return { change: { kind: 'secrets', secrets } as const, problems };
  };
  const { change, problems } = parse(text);
  pushProblems(chosen, problems, layer, faults);
  followNamed(chosen, text, { layer, options, cwd, files }, parse);
  return change.secrets;
}

export function parseSecretsFile(text: string): ReturnType<typeof parseSecrets> {
  return parseSecrets(contentLines(text).map(({ line }) => line));
}

/** The file that an option names. */
export function followNamed(
  name: NamedFileOption,
  text: string,
  { layer, options, cwd, files }: Omit<Reading, 'faults'>,
  parse: AccessFile['parse'],
): void {
  const where = layer.get(name)?.where ?? `--${name}`;
  followRegular({ where, file: path.resolve(cwd, options[name] ?? ''), text, parse }, files);
}

/** The content of the file that an option names; undefined if it is not set, or cannot be read, which is a fault. */
export function readNamedFile(
  name: NamedFileOption,
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): string | undefined {
  const file = options[name];
  if (file === undefined) return undefined;
  try {
    return readTextFile(path.resolve(cwd, file));
  } catch (error) {
    pushProblems(name, [fileProblem(error)], layer, faults);
    return undefined;
  }
}

/** Those of `names` that are set. More than one is a fault. */
export function chooseOne<N extends OptionName>(names: readonly N[], layer: Layer, faults: Fault[]): readonly N[] {
  const given = names.filter((name) => layer.has(name));
  if (given.length > 1) {
    const where = given.map((name) => layer.get(name)?.where ?? '').join(', ');
    faults.push({ where, problem: 'exclude each other; keep one.' });
  }
  return given;
}

export function pushProblems(name: OptionName, problems: readonly string[], layer: Layer, faults: Fault[]): void {
  const raw = layer.get(name);
  const where = raw === undefined ? `--${name}` : describeValue(raw, optionRow(name).isSecret === true);
  for (const problem of problems) faults.push({ where, problem: `${problem}.` });
}
