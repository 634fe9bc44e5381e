/** Hosts stdio servers: one process a session. */
import { childEnvironment } from './child-environment.ts';
import { startChildGroup } from './child-group.ts';
import type { HostCallbacks, HostContext, HostSession, McpHost } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { createSessionSet } from './session-set.ts';
import { splitCommandLine } from './split-command-line.ts';
import { createStdioSession } from './stdio-session.ts';
import type { StdioLimits } from './stdio-session.ts';

export interface StdioHostOptions {
  /** Command line: split into words like a POSIX shell does, run without a shell. */
  readonly command: string;
  /** Variables besides the few that are inherited. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the working directory of this process. */
  readonly cwd?: string;
}

const DEFAULT_LIMITS: StdioLimits = {
  stdinMs: 2000,
  termMs: 2000,
  killMs: 1000,
  maxLineBytes: 16 * 1024 * 1024,
  maxWaitingBytes: 32 * 1024 * 1024,
  outputMs: 5000,
  log: { perSecond: 20, burst: 100 },
};

/**
 * A host that starts one process a session, as a process group of its own. Throws `HOST_CONFIG` for a command line that
 * cannot be split; `open` rejects with `HOST_CONFIG` if the command cannot be started. Lines of stdout that are not
 * JSON-RPC are logged and skipped. A session whose process ends, closes its pipes, writes a line over the bound or does
 * not read its input is gone, with a reason that holds the last lines of stderr. `close` ends stdin, then sends SIGTERM,
 * then SIGKILL to the group. If this process is killed with SIGKILL, the children see the end of their stdin.
 * SPEC: HOST-STDIO-*.
 */
export function createStdioHost(options: StdioHostOptions, deps: HostDeps, limits: Partial<StdioLimits> = {}): McpHost {
  const words = splitCommandLine(options.command);
  const env = childEnvironment(process.env, options.env ?? {});
  const sessions = createSessionSet();
  const allLimits = { ...DEFAULT_LIMITS, ...limits };
  return {
    kind: 'stdio',
    open: (context: HostContext, callbacks: HostCallbacks) =>
      sessions.open(context, callbacks, async (guarded): Promise<HostSession> => {
        const child = await startChildGroup({ words, env, cwd: options.cwd }, deps.clock);
        const logger = deps.logger.child({ sessionId: context.sessionId, pid: child.process.pid });
        return createStdioSession(child, guarded, { ...deps, logger }, allLimits);
      }),
    close: () => sessions.close(),
  };
}
