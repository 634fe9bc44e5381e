/** The ready line. */
import { DEFAULT_SERVER } from './server-settings.ts';
import { formatLog } from './format-value.ts';
import type { Role } from './option-table.ts';
import { redactUrl } from './print-settings.ts';
import type { Settings } from './settings.ts';

export function describeStart(
  role: Role,
  settings: Settings,
  gateway: { readonly url: string; readonly adminUrl: string | null } | undefined,
): string {
  const log = `log ${formatLog(settings.log.location)}`;
  const names = Object.keys(settings.worker.servers);
  const servers = names.map((name) => describeServer(name, settings)).join('; ');
  if (gateway === undefined) return `Throughline worker is ready: ${servers} (${log})`;
  const { origin } = new URL(gateway.url);
  const urls = names.length === 1 ? `${origin}/mcp` : names.map((name) => `${origin}/mcp/${name}`).join(', ');
  if (role === 'gateway') return `Throughline gateway is ready: ${urls} (${log})`;
  return `Throughline is ready: ${urls} (${servers}; ${log})`;
}

function describeServer(name: string, settings: Settings): string {
  const server = settings.worker.servers[name];
  const prefix = name === DEFAULT_SERVER ? 'server' : `server ${name}`;
  if (settings.serverOrigin === 'demo') return 'the demo server';
  if (server?.stdio !== undefined) return `${prefix}: ${server.stdio}`;
  if (server?.upstream !== undefined) return `${prefix}: ${redactUrl(server.upstream)}`;
  return `${prefix}: ${server?.module ?? ''}`;
}
