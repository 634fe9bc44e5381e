/** The host that a server's configuration asks for. */
import type { ServerConfig } from '../config.ts';
import { HostError } from './host.ts';
import type { McpHost } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { createModuleHost } from './module-host.ts';
import { createStdioHost } from './stdio-host.ts';
import { createUpstreamHost } from './upstream-host.ts';

/** Does no I/O. Throws `HOST_CONFIG` if the configuration cannot work. */
export function createHost(config: ServerConfig, deps: HostDeps): McpHost {
  const { module, stdio, upstream, env, cwd, headers } = config;
  const directory = cwd === undefined ? {} : { cwd };
  if (module !== undefined) return createModuleHost({ module, ...directory }, deps);
  if (stdio !== undefined) {
    return createStdioHost({ command: stdio, ...directory, ...(env === undefined ? {} : { env }) }, deps);
  }
  if (upstream !== undefined) {
    return createUpstreamHost({ url: upstream, ...(headers === undefined ? {} : { headers }) }, deps);
  }
  throw new HostError('HOST_CONFIG', 'a server needs one of module, stdio, upstream');
}
