/** Whose tokens are taken: one authorization server given by options, or those of the file. */
import path from 'node:path';
import { IssuerSchema } from '@throughline/gateway/config';
import type { IssuerConfig } from '@throughline/gateway/config';
import { followNamed, followRegular, readNamedFile } from './access-files.ts';
import type { AccessFile } from './access-files.ts';
import type { Fault } from './faults.ts';
import { fileProblem } from './file-problem.ts';
import type { Layer } from './layers.ts';
import { didYouMean } from './nearest-name.ts';
import type { OptionName } from './option-table.ts';
import { parseKeys } from './parse-keys.ts';
import { readTextFile } from './read-text-file.ts';
import type { ResolvedOptions } from './resolve-options.ts';

export interface IssuerSources {
  readonly layer: Layer;
  readonly options: ResolvedOptions;
  /** What stands under `auth.issuers` in the file, its name and its folder. */
  readonly file: { readonly issuers: unknown; readonly name: string; readonly folder: string } | undefined;
  readonly cwd: string;
  /** Files of keys, to read again. */
  readonly files: AccessFile[];
}

export interface IssuerSettings {
  readonly issuers: IssuerConfig[];
  /** As a file would hold them; null: they come from options, or there are none. */
  readonly written: readonly Record<string, unknown>[] | null;
}

const ISSUER = 'auth-issuer';
/** Fields of an issuer, and the option that sets each. */
const OPTION_OF_FIELD = {
  issuer: ISSUER,
  jwksUrl: 'auth-jwks-url',
  keys: 'auth-keys-file',
  audience: 'auth-audience',
  algorithms: 'auth-algorithms',
} as const satisfies Record<string, OptionName>;
const DETAILS = ['auth-jwks-url', 'auth-keys-file', 'auth-audience', 'auth-algorithms'] as const;
const FIELDS_IN_FILE = ['issuer', 'jwksUrl', 'keysFile', 'audience', 'algorithms'];

/** An issuer given by options replaces those of the file. */
export function resolveIssuers(sources: IssuerSources, faults: Fault[]): IssuerSettings {
  const { layer, options, file, cwd, files } = sources;
  if (layer.has(ISSUER)) {
    if (layer.get(ISSUER)?.source === 'file' && file?.issuers !== undefined)
      faults.push({ where: `${file.name}: auth.issuer, auth.issuers`, problem: 'exclude each other; keep one.' });
    const where = (field: string): string =>
      layer.get(OPTION_OF_FIELD[field as keyof typeof OPTION_OF_FIELD] ?? ISSUER)?.where ?? `--${ISSUER}`;
    const text = readNamedFile('auth-keys-file', layer, options, cwd, faults);
    const keys = text === undefined ? undefined : keysOf(text, where('keys'), faults);
    // What is wrong with the file has been said.
    if (options['auth-keys-file'] !== undefined && keys === undefined) return { issuers: [], written: null };
    const input = {
      issuer: options[ISSUER] ?? '',
      jwksUrl: options['auth-jwks-url'],
      keys,
      audience: options['auth-audience'],
      algorithms: options['auth-algorithms'],
    };
    const issuers = parseIssuer(input, where, faults);
    const [issuer] = issuers;
    if (text !== undefined && issuer !== undefined)
      followNamed('auth-keys-file', text, { layer, options, cwd, files }, keysParser(issuer));
    return { issuers, written: null };
  }
  for (const detail of DETAILS) {
    const raw = layer.get(detail);
    if (raw !== undefined)
      faults.push({ where: raw.where, problem: `says something of an issuer, but none is named; set --${ISSUER}.` });
  }
  return file?.issuers === undefined ? { issuers: [], written: null } : readFileIssuers(file, files, faults);
}

function readFileIssuers(
  file: NonNullable<IssuerSources['file']>,
  files: AccessFile[],
  faults: Fault[],
): IssuerSettings {
  const { issuers: given, name, folder } = file;
  const place = `${name}: auth.issuers`;
  if (!Array.isArray(given) || given.length === 0) {
    faults.push({ where: place, problem: 'must be a list of authorization servers, each with its settings.' });
    return { issuers: [], written: null };
  }
  const issuers: IssuerConfig[] = [];
  const written: Record<string, unknown>[] = [];
  for (const [index, entry] of given.entries()) {
    const own = `${place}[${index}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
      faults.push({ where: own, problem: 'must hold names and values.' });
      continue;
    }
    const { keysFile, ...rest } = entry as Record<string, unknown>;
    const unknown = Object.keys(rest).filter((key) => !FIELDS_IN_FILE.includes(key));
    for (const key of unknown)
      faults.push({ where: `${own}.${key}`, problem: `no such setting.${didYouMean(key, FIELDS_IN_FILE)}` });
    if (unknown.length > 0) continue;
    const absolute = typeof keysFile === 'string' ? path.resolve(folder, keysFile) : undefined;
    let keys: unknown;
    let text: string | undefined;
    if (absolute !== undefined) {
      try {
        text = readTextFile(absolute);
        keys = keysOf(text, `${own}.keysFile`, faults);
        if (keys === undefined) continue;
      } catch (error) {
        faults.push({ where: `${own}.keysFile`, problem: `${fileProblem(error)}.` });
        continue;
      }
    }
    const where = (field: string): string => `${own}${field === '' ? '' : `.${field === 'keys' ? 'keysFile' : field}`}`;
    const [issuer] = parseIssuer({ ...rest, keys }, where, faults);
    if (issuer !== undefined) issuers.push(issuer);
    if (absolute !== undefined && text !== undefined && issuer !== undefined)
      followRegular({ where: `${own}.keysFile`, file: absolute, text, parse: keysParser(issuer) }, files);
    written.push({ ...rest, ...(absolute === undefined ? {} : { keysFile: absolute }) });
  }
  const names = issuers.map(({ issuer }) => issuer);
  const twice = names.find((issuer, index) => names.indexOf(issuer) !== index);
  if (twice !== undefined) faults.push({ where: place, problem: `names ${JSON.stringify(twice)} twice.` });
  return { issuers, written };
}

/** Undefined: it holds faults, which have been said. */
function keysOf(text: string, where: string, faults: Fault[]): unknown {
  const { keys, problems } = parseKeys(text);
  for (const problem of problems) faults.push({ where, problem: `${problem}.` });
  return problems.length > 0 ? undefined : keys;
}

/** Other keys of an issuer, judged as the first ones were. */
function keysParser(issuer: IssuerConfig): AccessFile['parse'] {
  return (text) => {
    const faults: Fault[] = [];
    const keys = keysOf(text, 'keys', faults);
    const [judged] = keys === undefined ? [] : parseIssuer({ ...issuer, keys }, () => 'keys', faults);
    return {
      change: { kind: 'keys', issuer: issuer.issuer, keys: judged?.keys ?? [] },
      problems: faults.map(({ problem }) => problem.replace(/\.$/, '')),
    };
  };
}

/** None if it is faulty. */
function parseIssuer(
  input: Record<string, unknown>,
  where: (field: string) => string,
  faults: Fault[],
): IssuerConfig[] {
  const defined = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const parsed = IssuerSchema.safeParse(defined);
  if (parsed.success) return [parsed.data];
  for (const { path: place, message } of parsed.error.issues)
    faults.push({ where: where(String(place[0] ?? '')), problem: `${message}.` });
  return [];
}
