/** One HTTP exchange as the core sees it: plain values in, a sink out. Express, or a simulation, stands behind it. */

export interface GatewayRequest {
  readonly method: string;
  /** Name of the MCP server that the path names. */
  readonly server: string;
  /** A header by its lower-case name. */
  header(name: string): string | undefined;
  readonly body: Uint8Array;
  /** Fires when the client's connection is gone. */
  readonly signal: AbortSignal;
}

export interface ResponseSink {
  /** Status and headers; once, before anything else. */
  head(status: number, headers: Readonly<Record<string, string>>): void;
  /** Writes text. `false`: the connection's buffer is full; write no more before {@link drained}. */
  write(text: string): boolean;
  /** Resolves when more may be written, or the connection is gone. */
  drained(): Promise<void>;
  /** Ends the answer. Idempotent. */
  end(): void;
}
