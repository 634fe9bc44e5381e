/** Tokens and secrets: from the options that name or hold them to what the gateway takes. */
import path from 'node:path';
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

export function readTokens(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): ReturnType<typeof parseTokens>['tokens'] | null {
  const text = readNamedFile('auth-tokens-file', layer, options, cwd, faults);
  if (text === undefined) return null;
  const { tokens, problems } = parseTokens(text);
  pushProblems('auth-tokens-file', problems, layer, faults);
  return tokens;
}

export function readSecrets(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): readonly Uint8Array[] | null {
  const [chosen] = chooseOne(['secrets', 'secrets-file'] as const, layer, faults);
  if (chosen === undefined) return null;
  const text = chosen === 'secrets' ? undefined : readNamedFile(chosen, layer, options, cwd, faults);
  const items = chosen === 'secrets' ? options.secrets : text && contentLines(text).map(({ line }) => line);
  if (items === undefined || typeof items === 'string') return null;
  const { secrets, problems } = parseSecrets(items);
  pushProblems(chosen, problems, layer, faults);
  return secrets;
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
