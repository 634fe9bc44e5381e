/** One HTTP exchange as the core sees it: plain values in, a sink out. Express, or a simulation, stands behind it. */

export interface GatewayRequest {
  readonly method: string;
  /** Name of the MCP server that the path names. */
  readonly server: string;
  /** By which path it came; default: `/mcp/<server>`. */
  readonly path?: string;
  /** A header by its lower-case name. */
  header(name: string): string | undefined;
  /**
   * From which address the client speaks, in the spelling of `client-address.ts`; `null`: it is not known. Absent: clients
   * have no addresses here.
   */
  readonly clientAddress?: () => string | null;
  /** Not read any more once the answer has begun. */
  readonly body: Uint8Array;
  /** Fires when the client's connection is gone. */
  readonly signal: AbortSignal;
}

/** What an answer to nobody counts as: the client went before it began. */
export const CLIENT_GONE = 499;

export interface ResponseSink {
  /** Status and headers; once, before anything else. */
  head(status: number, headers: Readonly<Record<string, string>>): void;
  /** Writes text. `false`: the connection's buffer is full; write no more before {@link drained}. */
  write(text: string): boolean;
  /**
   * Resolves when more may be written, the connection is gone, or `signal` fires. Whoever makes the sink sees to it that
   * a client that takes nothing is gone after a bounded time.
   */
  drained(signal: AbortSignal): Promise<void>;
  /** Ends the answer. Idempotent. */
  end(): void;
}
