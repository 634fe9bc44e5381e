/** Reads every layer and makes the settings of them, or throws one error that names all faults. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GatewayConfigSchema } from '@throughline/gateway/config';
import type { LogLevel } from '@throughline/telemetry/pino';
import { WorkerConfigSchema } from '@throughline/worker/config';
import type { z } from 'zod';
import { contentLines, parseSecrets, parseTokens } from './auth-tokens.ts';
import { ConfigError } from './faults.ts';
import type { Fault } from './faults.ts';
import { formatAddress, formatDuration, formatSize } from './format-value.ts';
import { mergeLayers } from './layers.ts';
import type { Layer, RawValue } from './layers.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, Role } from './option-table.ts';
import type { Arguments } from './parse-arguments.ts';
import { readConfigFile } from './read-config-file.ts';
import type { FileLayer } from './read-config-file.ts';
import { readEnvironment } from './read-environment.ts';
import type { Environment } from './read-environment.ts';
import { defaultLayer, describeValue, resolveOptions } from './resolve-options.ts';
import type { ResolvedOptions } from './resolve-options.ts';
import { resolveServers } from './server-settings.ts';
import type { Settings } from './settings.ts';

export interface SettingsSources {
  readonly arguments: Arguments;
  readonly environment: Environment;
  /** Folder that relative paths and the default configuration file are in. */
  readonly cwd: string;
  /** Module of the server that is served when none is configured. */
  readonly demoModule: string;
}

const DEFAULT_FILE = 'throughline.yaml';
const SECRETLESS_GATEWAY = GatewayConfigSchema.omit({ secrets: true });
const REFRESH_SHARE = 4;
const MAX_PARTITIONS = 256;

/** Throws {@link ConfigError}. */
export function loadSettings(sources: SettingsSources, role: Role): Settings {
  const { cwd, demoModule } = sources;
  const environment = readEnvironment(sources.environment);
  const faults: Fault[] = [...sources.arguments.faults, ...environment.faults];
  const file = findConfigFile(sources.arguments.configFile ?? environment.configFile, cwd, faults);
  const layer = mergeLayers([
    flagLayer(sources.arguments),
    environment.layer,
    file?.layer ?? new Map(),
    defaultLayer(),
  ]);
  const options = resolveOptions(layer, faults);

  const servers = resolveServers({ layer, options, file, cwd, demoModule }, faults);
  const tokens = readTokens(layer, options, cwd, faults);
  const secrets = readSecrets(layer, options, cwd, faults);
  const gateway = parseRole(
    SECRETLESS_GATEWAY,
    'gateway',
    { ...fieldsOf('gateway', options), ...refreshField(options), servers: namesOf(servers.servers), tokens },
    layer,
    faults,
  );
  const worker = parseRole(
    WorkerConfigSchema,
    'worker',
    { ...fieldsOf('worker', options), servers: servers.servers },
    layer,
    faults,
  );
  checkTogether(role, layer, options, faults);
  const warnings = checkExposure(role, layer, options, tokens !== null, faults);
  if (faults.length > 0 || gateway === undefined || worker === undefined || options.log === undefined)
    throw new ConfigError(faults);
  return {
    log: {
      location: options.log,
      retentionMs: options.retention ?? 0,
      maxBytes: options['max-size'] ?? 0,
      partitions: options.partitions ?? 0,
    },
    secrets,
    gateway,
    worker,
    serverOrigin: servers.origin,
    logLevel: (options['log-level'] ?? 'info') as LogLevel,
    jsonLogs: options['json-logs'] ?? false,
    warnings,
    layer,
    configFile: file?.name,
  };
}

function flagLayer(given: Arguments): Layer {
  const layer = new Map<OptionName, RawValue>();
  for (const [name, text] of given.options) layer.set(name, { text, source: 'flag', where: `--${name}` });
  return layer;
}

interface NamedFile extends FileLayer {
  readonly name: string;
  readonly folder: string;
}

function findConfigFile(named: string | undefined, cwd: string, faults: Fault[]): NamedFile | undefined {
  const name = named ?? DEFAULT_FILE;
  const file = path.resolve(cwd, name);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (named !== undefined || errorCode(error) !== 'ENOENT')
      faults.push({ where: `--config ${JSON.stringify(name)}`, problem: `${fileProblem(error)}.` });
    return undefined;
  }
  const folder = path.dirname(file);
  const layer = readConfigFile(text, name, folder);
  faults.push(...layer.faults);
  return { ...layer, name, folder };
}

function readTokens(
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

function readSecrets(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): readonly Uint8Array[] | null {
  const given = (['secrets', 'secrets-file'] as const).filter((name) => layer.has(name));
  const [chosen] = given;
  if (chosen === undefined) return null;
  if (given.length > 1) {
    const where = given.map((name) => layer.get(name)?.where ?? '').join(', ');
    faults.push({ where, problem: 'exclude each other; keep one.' });
  }
  const text = chosen === 'secrets' ? undefined : readNamedFile(chosen, layer, options, cwd, faults);
  const items = chosen === 'secrets' ? options.secrets : text && contentLines(text).map(({ line }) => line);
  if (items === undefined || typeof items === 'string') return null;
  const { secrets, problems } = parseSecrets(items);
  pushProblems(chosen, problems, layer, faults);
  return secrets;
}

function readNamedFile(
  name: 'auth-tokens-file' | 'secrets-file',
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
): string | undefined {
  const file = options[name];
  if (file === undefined) return undefined;
  try {
    return readFileSync(path.resolve(cwd, file), 'utf8');
  } catch (error) {
    pushProblems(name, [fileProblem(error)], layer, faults);
    return undefined;
  }
}

function pushProblems(name: OptionName, problems: readonly string[], layer: Layer, faults: Fault[]): void {
  const raw = layer.get(name);
  const where = raw === undefined ? `--${name}` : describeValue(raw, optionRow(name).isSecret === true);
  for (const problem of problems) faults.push({ where, problem: `${problem}.` });
}

/** The fields of a role's schema that options set. */
function fieldsOf(role: 'gateway' | 'worker', options: ResolvedOptions): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of OPTION_NAMES) {
    const field = optionRow(name)[role];
    if (field !== undefined && options[name] !== undefined) fields[field] = options[name];
  }
  return fields;
}

/** An idle stream must get a new id well before the record that its cursor names is evicted. */
function refreshField(options: ResolvedOptions): Record<string, unknown> {
  if (options.refresh !== undefined || options.retention === undefined) return {};
  const byDefault = SECRETLESS_GATEWAY.shape.refreshMs.parse(undefined);
  return { refreshMs: Math.max(100, Math.min(byDefault, Math.floor(options.retention / REFRESH_SHARE))) };
}

function namesOf(servers: Readonly<Record<string, unknown>>): string[] {
  const names = Object.keys(servers);
  // Faulty servers are reported where they are read; an empty list would be a second fault for the same cause.
  return names.length === 0 ? ['faulty'] : names;
}

function parseRole<S extends z.ZodType>(
  schema: S,
  role: 'gateway' | 'worker',
  input: Record<string, unknown>,
  layer: Layer,
  faults: Fault[],
): z.infer<S> | undefined {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const field = String(issue.path[0]);
    const name = OPTION_NAMES.find((option) => optionRow(option)[role] === field);
    const raw = name === undefined ? undefined : layer.get(name);
    const where = raw === undefined ? `${role}.${issue.path.join('.')}` : describeValue(raw, false);
    const problem = describeIssue(issue, name);
    // An option of both roles has one fault, not two.
    if (!faults.some((fault) => fault.where === where && fault.problem === problem)) faults.push({ where, problem });
  }
  return undefined;
}

function describeIssue(issue: z.core.$ZodIssue, name: OptionName | undefined): string {
  const kind = name === undefined ? undefined : optionRow(name).kind;
  const format = (value: number | bigint): string => {
    if (kind === 'duration') return formatDuration(Number(value));
    return kind === 'size' ? formatSize(Number(value)) : String(value);
  };
  if (issue.code === 'too_small') return `must be at least ${format(issue.minimum)}.`;
  if (issue.code === 'too_big') return `must be at most ${format(issue.maximum)}.`;
  return `${issue.message}.`;
}

/** Rules over several options. */
function checkTogether(role: Role, layer: Layer, options: ResolvedOptions, faults: Fault[]): void {
  const where = (name: OptionName): string =>
    describeValue(layer.get(name) ?? { text: '', source: 'default', where: `--${name}` }, false);
  const { log, retention, refresh, heartbeat, partitions } = options;
  const deadAfter = options['dead-after'];
  const maxSize = options['max-size'];
  if (log?.kind === 'memory' && role !== 'serve')
    faults.push({
      where: where('log'),
      problem: `other processes cannot see it, so a ${role} on it is alone; use sqlite:<file>.`,
    });
  if (retention !== undefined && retention < 1000)
    faults.push({ where: where('retention'), problem: 'must be at least 1s.' });
  if (maxSize !== undefined && maxSize < 16 * 1024 ** 2)
    faults.push({ where: where('max-size'), problem: 'must be at least 16MiB, or one large message would fill it.' });
  if (partitions !== undefined && (partitions < 1 || partitions > MAX_PARTITIONS))
    faults.push({ where: where('partitions'), problem: `must be from 1 to ${MAX_PARTITIONS}.` });
  if (refresh !== undefined && retention !== undefined && refresh * 2 > retention)
    faults.push({
      where: where('refresh'),
      problem: `must be at most half of the retention (${formatDuration(retention)}), or idle cursors are evicted.`,
    });
  if (heartbeat !== undefined && deadAfter !== undefined && heartbeat * 2 > deadAfter)
    faults.push({
      where: where('heartbeat'),
      problem: `must be at most half of --dead-after (${formatDuration(deadAfter)}), or living workers count as gone.`,
    });
}

/** Whoever reaches an address without tokens can call every tool, so that has to be said out loud. */
function checkExposure(
  role: Role,
  layer: Layer,
  options: ResolvedOptions,
  hasTokens: boolean,
  faults: Fault[],
): string[] {
  const { listen } = options;
  if (
    role === 'worker' ||
    listen === undefined ||
    isLoopback(listen.host) ||
    layer.has('auth-tokens-file') ||
    hasTokens
  )
    return [];
  const address = formatAddress(listen);
  if (options['allow-anonymous'] === true)
    return [`${address} can be reached from other machines and nobody is asked for a token (--allow-anonymous)`];
  faults.push({
    where: layer.get('listen')?.where ?? '--listen',
    problem: `${address} can be reached from other machines, but no tokens are set; set --auth-tokens-file, listen on 127.0.0.1, or say --allow-anonymous.`,
  });
  return [];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function fileProblem(error: unknown): string {
  switch (errorCode(error)) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
    case 'EPERM':
      return 'the file may not be read by this user';
    case 'EISDIR':
      return 'this is a folder, not a file';
    default:
      return `the file cannot be read (${error instanceof Error ? error.message : String(error)})`;
  }
}
