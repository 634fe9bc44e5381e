/** Which MCP servers are served: one given by options, those of the file, or the demo server. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ServerNameSchema, ServerSchema } from '@throughline/worker/config';
import type { ServerConfig } from '@throughline/worker/config';
import type { Fault } from './faults.ts';
import type { Layer } from './layers.ts';
import { didYouMean } from './nearest-name.ts';
import type { OptionName } from './option-table.ts';
import type { ResolvedOptions } from './resolve-options.ts';

export type ServerOrigin = 'options' | 'file' | 'demo';

export interface ServerSettings {
  readonly origin: ServerOrigin;
  readonly servers: Readonly<Record<string, ServerConfig>>;
}

export interface ServerSources {
  readonly layer: Layer;
  readonly options: ResolvedOptions;
  /** What stands under `servers` in the file, its name and its folder. */
  readonly file: { readonly servers: unknown; readonly name: string; readonly folder: string } | undefined;
  readonly cwd: string;
  readonly demoModule: string;
}

export const DEFAULT_SERVER = 'default';
const KINDS = ['stdio', 'module', 'upstream'] as const satisfies readonly OptionName[];
const DETAILS = ['on-owner-loss', 'max-sessions', 'idle-ttl'] as const satisfies readonly OptionName[];

/** A server given by options replaces those of the file: flags over environment over file. */
export function resolveServers(sources: ServerSources, faults: Fault[]): ServerSettings {
  const { layer, options, file, cwd, demoModule } = sources;
  const given = KINDS.filter((kind) => layer.has(kind));
  if (given.length > 1) {
    const where = given.map((kind) => layer.get(kind)?.where ?? '').join(', ');
    faults.push({ where, problem: 'exclude each other; keep one, or name several servers in throughline.yaml.' });
  }
  const details = {
    onOwnerLoss: options['on-owner-loss'],
    maxSessions: options['max-sessions'],
    idleTtl: options['idle-ttl'] === undefined ? undefined : options['idle-ttl'] / 1000,
  };
  const [kind] = given;
  if (kind !== undefined) {
    const target = options[kind] ?? '';
    const value = kind === 'module' ? absoluteModule(target, cwd) : target;
    return { origin: 'options', servers: parseOne({ [kind]: value, ...details }, layer, kind, faults) };
  }
  if (file?.servers !== undefined) {
    for (const detail of DETAILS) {
      const raw = layer.get(detail);
      if (raw !== undefined && raw.source !== 'default')
        faults.push({
          where: raw.where,
          problem: `belongs to a server given by an option, but the servers come from ${file.name}; set it there.`,
        });
    }
    return { origin: 'file', servers: parseFileServers(file, faults) };
  }
  const chosen = layer.get('on-owner-loss')?.source ?? 'default';
  const demo = {
    module: demoModule,
    ...details,
    // The demo server keeps no state of a session, so it can be rebuilt.
    onOwnerLoss: chosen === 'default' ? 'restore' : details.onOwnerLoss,
  };
  return { origin: 'demo', servers: parseOne(demo, layer, 'module', faults) };
}

/** For the faults of one server: the option that set each field. */
const OPTION_OF_FIELD: Readonly<Record<string, OptionName>> = {
  stdio: 'stdio',
  module: 'module',
  upstream: 'upstream',
  onOwnerLoss: 'on-owner-loss',
  maxSessions: 'max-sessions',
  idleTtl: 'idle-ttl',
};

function parseOne(
  input: Record<string, unknown>,
  layer: Layer,
  kind: OptionName,
  faults: Fault[],
): Record<string, ServerConfig> {
  const defined = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const parsed = ServerSchema.safeParse(defined);
  if (parsed.success) return { [DEFAULT_SERVER]: parsed.data };
  for (const issue of parsed.error.issues) {
    const field = String(issue.path[0] ?? kind);
    const raw = layer.get(OPTION_OF_FIELD[field] ?? kind);
    const problem = field === 'idleTtl' ? 'must be whole seconds, at least 1s.' : `${issue.message}.`;
    faults.push({ where: raw?.where ?? `--${kind}`, problem });
  }
  return {};
}

function parseFileServers(file: NonNullable<ServerSources['file']>, faults: Fault[]): Record<string, ServerConfig> {
  const { servers, name: fileName, folder } = file;
  if (typeof servers !== 'object' || servers === null || Array.isArray(servers) || Object.keys(servers).length === 0) {
    faults.push({
      where: `${fileName}: servers`,
      problem: 'must name at least one server, with its settings below it.',
    });
    return {};
  }
  const result: Record<string, ServerConfig> = {};
  for (const [name, value] of Object.entries(servers)) {
    const place = `${fileName}: servers.${name}`;
    const named = ServerNameSchema.safeParse(name);
    for (const issue of named.error?.issues ?? []) faults.push({ where: place, problem: `${issue.message}.` });
    const parsed = ServerSchema.safeParse(value);
    if (parsed.success) result[name] = withAbsolutePaths(parsed.data, folder);
    for (const issue of parsed.error?.issues ?? []) {
      const where = [place, ...issue.path.map(String)].join('.');
      if (issue.code !== 'unrecognized_keys') {
        faults.push({ where, problem: `${issue.message}.` });
        continue;
      }
      for (const key of issue.keys)
        faults.push({
          where: `${where}.${key}`,
          problem: `no such setting.${didYouMean(key, Object.keys(ServerSchema.shape))}`,
        });
    }
  }
  return result;
}

function withAbsolutePaths(server: ServerConfig, folder: string): ServerConfig {
  return {
    ...server,
    ...(server.module === undefined ? {} : { module: absoluteModule(server.module, folder) }),
    ...(server.cwd === undefined ? {} : { cwd: path.resolve(folder, server.cwd) }),
  };
}

/** A path from where it was written; what is no file there is the name of a package. */
function absoluteModule(module: string, folder: string): string {
  const file = path.resolve(folder, module);
  return module.startsWith('.') || existsSync(file) ? file : module;
}
