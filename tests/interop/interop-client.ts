/** The one face of all clients: what a scenario asks of them. */

export interface InteropSession extends AsyncDisposable {
  /** The text of the result. Rejects with the client's own error. `onProgress` gets each step as the client reports it. */
  callTool(name: string, args: Readonly<Record<string, unknown>>, onProgress?: (step: number) => void): Promise<string>;
}

export interface InteropClient {
  readonly name: string;
  readonly version: string;
  /** Whether it asks for progress, and hands it to whoever calls. */
  readonly reportsProgress: boolean;
  connect(url: string): Promise<InteropSession>;
}

/** A client that cannot be had here. */
export interface Skipped {
  readonly name: string;
  /** Why, in words. */
  readonly skipped: string;
}

export interface ClientSource {
  readonly name: string;
  /** `mayFetch`: fetches and builds what the client needs into the cache if it is not there. */
  prepare(options: { readonly mayFetch: boolean }): Promise<InteropClient | Skipped>;
}

/** What a driver in another language says of a failed call. */
export class DriverError extends Error {
  override readonly name = 'DriverError';
  /** The JSON-RPC error code, where there was one. */
  readonly code: number | undefined;
  readonly data: unknown;

  constructor(message: string, code?: number, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
