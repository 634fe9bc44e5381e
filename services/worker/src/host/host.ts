/**
 * What the worker needs of an MCP server: one instance a session that takes and gives JSON-RPC messages, unchanged and
 * in order. Hosts know nothing of logs, claims or streams.
 */
import type { JsonRpcId, JsonRpcMessage } from '@throughline/protocol';

export interface HostContext {
  /** The session's key: stable over restarts of the instance. */
  readonly sessionId: string;
  readonly principal: string;
  /** Aborts when the session ends or its instance is unloaded. */
  readonly signal: AbortSignal;
}

export interface HostCallbacks {
  /**
   * The server sent `message`. `related`: the id of the client's request that it belongs to, if the host knows.
   * The returned promise is backpressure: it resolves when there is room for more. It never rejects.
   */
  onMessage(message: JsonRpcMessage, related?: JsonRpcId): Promise<void>;
  /**
   * The server asks that the connection of this request's stream be closed for now; `standalone` means the standalone
   * stream (a request with that very id is never named here).
   */
  onCloseStream(related: JsonRpcId): void;
  /**
   * The instance is gone by itself (process died, upstream session lost). At most once; never after `close()`.
   * @param details what it had said elsewhere (the last lines of its stderr), for the log and whoever set it up: they may
   * hold what is no client's business.
   */
  onGone(reason: string, details?: string): void;
}

export interface DeliverExtra {
  /** Whether the client can poll (2025-11-25 and primed), so that the server may close its stream early. */
  readonly canPoll: boolean;
}

export interface HostSession {
  /** Hands one client message to the server. Resolves when it was handed over, not when it was answered. Rejects only if the instance is gone. */
  deliver(message: JsonRpcMessage, extra: DeliverExtra): Promise<void>;
  /** Ends the instance: handlers are aborted, a child is killed. Idempotent, bounded in time. */
  close(): Promise<void>;
}

export interface McpHost {
  /** `module`, `stdio` or `upstream`, for logs. */
  readonly kind: string;
  /** Starts one instance. Rejects with a `HostError` whose message says what failed and how to mend it. */
  open(context: HostContext, callbacks: HostCallbacks): Promise<HostSession>;
  /** Ends everything that is left. Idempotent. */
  close(): Promise<void>;
}

/**
 * - `HOST_CONFIG`: what was configured cannot work (module without a factory, command not found); the message names the fix.
 * - `HOST_GONE`: the instance ended.
 * - `HOST_TIMEOUT`: it did not answer in time.
 */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: 'HOST_CONFIG' | 'HOST_GONE' | 'HOST_TIMEOUT';
  constructor(code: HostError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
