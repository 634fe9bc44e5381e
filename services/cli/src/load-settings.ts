/** Reads every layer and makes the settings of them, or throws one error that names all faults. */
import path from 'node:path';
import { GatewayConfigSchema } from '@throughline/gateway/config';
import type { LogLevel } from '@throughline/telemetry/pino';
import { WorkerConfigSchema } from '@throughline/worker/config';
import type { z } from 'zod';
import { readSecrets, readTokens } from './access-files.ts';
import type { AccessFile } from './access-files.ts';
import { readTextFile } from './read-text-file.ts';
import { checkExposure, checkPublicUrl, checkScopes, checkSecrets, checkTogether } from './check-settings.ts';
import { checkFileModes } from './check-file-modes.ts';
import { checkTls } from './check-tls.ts';
import { ConfigError } from './faults.ts';
import type { Fault } from './faults.ts';
import { errorCode, fileProblem } from './file-problem.ts';
import { formatDuration, formatSize } from './format-value.ts';
import { resolveIssuers } from './issuer-settings.ts';
import { resolveKafka } from './kafka-settings.ts';
import { mergeLayers } from './layers.ts';
import type { Layer, RawValue } from './layers.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, OptionUser } from './option-table.ts';
import type { Arguments } from './parse-arguments.ts';
import { readConfigFile } from './read-config-file.ts';
import type { FileLayer } from './read-config-file.ts';
import { readEnvironment } from './read-environment.ts';
import type { Environment } from './read-environment.ts';
import { refreshWithin } from './refresh-within.ts';
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

/** Of a log file; on Kafka the topics have 12. */
const EMBEDDED_PARTITIONS = 4;
const DEFAULT_FILE = 'throughline.yaml';
/** In the folder that a log file is in by default. */
const LOCAL_SECRET_FILE = '.throughline/secrets';
const SECRETLESS_GATEWAY = GatewayConfigSchema.omit({ secrets: true });

/** Throws {@link ConfigError}. */
export function loadSettings(sources: SettingsSources, role: OptionUser): Settings {
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
  const accessFiles: AccessFile[] = [];
  const reading = { layer, options, cwd, faults, files: accessFiles };
  const tokens = readTokens(reading);
  const { issuers, written: fileIssuers } = resolveIssuers({ layer, options, file, cwd, files: accessFiles }, faults);
  const secrets = readSecrets(reading);
  const kafka = resolveKafka(layer, options, cwd, faults);
  const asksForTokens = tokens !== null || issuers.length > 0;
  const gateway = parseRole(
    SECRETLESS_GATEWAY,
    'gateway',
    {
      ...fieldsOf('gateway', options),
      ...refreshField(options),
      ...checkPublicUrl(role, layer, options, { forTokens: asksForTokens, ofIssuers: issuers.length > 0 }, faults),
      servers: namesOf(servers.servers),
      tokens,
      issuers,
      ...checkTls(role, layer, options, cwd, faults),
    },
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
  checkSecrets(role, layer, options, faults);
  checkScopes(layer, issuers.length > 0, faults);
  const warnings = checkExposure(role, layer, options, asksForTokens, faults);
  if (faults.length > 0 || gateway === undefined || worker === undefined || options.log === undefined)
    throw new ConfigError(faults);
  const isRetentionSet = layer.get('retention')?.source !== 'default';
  return {
    log: {
      location: options.log,
      isDefaultLocation: layer.get('log')?.source === 'default',
      retentionMs: options.retention ?? 0,
      maxBytes: options['max-size'] ?? 0,
      partitions: options.partitions ?? EMBEDDED_PARTITIONS,
      leaseMs: options.lease ?? null,
      isRetentionSet,
      appendTimeoutMs: gateway.appendTimeoutMs,
      kafka,
      topics: {
        partitions: options.partitions,
        replication: options.replication,
        retentionMs: isRetentionSet ? options.retention : undefined,
        inboundRetentionMs: options['inbound-retention'],
        maxMessageBytes: options['max-message'],
      },
    },
    secrets,
    accessFiles,
    localSecretFile: path.resolve(cwd, LOCAL_SECRET_FILE),
    gateway,
    worker,
    workerAdmin: layer.get('admin')?.source === 'default' ? null : (options.admin ?? null),
    serverOrigin: servers.origin,
    fileIssuers,
    logLevel: (options['log-level'] ?? 'info') as LogLevel,
    jsonLogs: options['json-logs'] ?? false,
    warnings: [...warnings, ...checkFileModes(options, cwd)],
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
    text = readTextFile(file);
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

/** The fields of a role's schema that options set. */
function fieldsOf(role: 'gateway' | 'worker', options: ResolvedOptions): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of OPTION_NAMES) {
    const field = optionRow(name)[role];
    if (field !== undefined && options[name] !== undefined) fields[field] = options[name];
  }
  return fields;
}

function refreshField(options: ResolvedOptions): Record<string, unknown> {
  if (options.refresh !== undefined || options.retention === undefined) return {};
  const byDefault = SECRETLESS_GATEWAY.shape.refreshMs.parse(undefined);
  return { refreshMs: refreshWithin(byDefault, options.retention) };
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
