/** Hosts an existing Streamable HTTP MCP server: one session there a session here. */
import type { HostCallbacks, HostContext, McpHost } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { createSessionSet } from './session-set.ts';
import type { UpstreamLimits } from './upstream-context.ts';
import { targetOf } from './upstream-http.ts';
import { createUpstreamSession } from './upstream-session.ts';

export interface UpstreamHostOptions {
  readonly url: string;
  /** Sent with every request, for the upstream's own credentials. Nothing of the client's is ever sent. */
  readonly headers?: Readonly<Record<string, string>>;
}

const DEFAULT_LIMITS: UpstreamLimits = {
  initializeMs: 30_000,
  answerMs: 30_000,
  silenceMs: 300_000,
  deleteMs: 2000,
  cancelGraceMs: 1000,
  lingerMs: 1000,
  maxResumes: 5,
  maxPollMs: 300_000,
  reconnect: { initialMs: 500, maxMs: 30_000 },
  maxMessageSize: 16 * 1024 * 1024,
  maxWaiting: 1024,
};

/**
 * A host that relays to an upstream. `open` does no I/O; the upstream is first asked by `initialize`. Every request gets
 * exactly one response: the upstream's, or a JSON-RPC error with `data.code` `SERVER_FAILED` and `data.reason`
 * `upstream-unreachable`, `upstream-status` (with `status`), `upstream-bad-answer`, `upstream-stream-lost` or
 * `upstream-timeout`. Streams that break are resumed with `Last-Event-ID` where they have event ids. A 404 ends the
 * session. A JSON answer that takes longer than 300 s, or a silence of that length on a stream, counts as a broken
 * connection. SPEC: HOST-UPSTREAM-*.
 */
export function createUpstreamHost(
  options: UpstreamHostOptions,
  deps: HostDeps,
  limits: Partial<UpstreamLimits> = {},
): McpHost {
  const sessions = createSessionSet();
  const target = targetOf(options.url, options.headers ?? {});
  const allLimits = { ...DEFAULT_LIMITS, ...limits };
  return {
    kind: 'upstream',
    open: (context: HostContext, callbacks: HostCallbacks) =>
      sessions.open(context, callbacks, (guarded) => {
        const logger = deps.logger.child({ sessionId: context.sessionId });
        return Promise.resolve(createUpstreamSession(target, guarded, { ...deps, logger }, allLimits));
      }),
    close: () => sessions.close(),
  };
}
