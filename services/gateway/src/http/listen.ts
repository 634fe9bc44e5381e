/** Binding HTTP servers, with errors that name the address and the fix. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `ADDRESS_IN_USE`, `ADDRESS_REFUSED` (not allowed, not here). */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly code: 'ADDRESS_IN_USE' | 'ADDRESS_REFUSED';
  constructor(code: ListenError['code'], message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

export interface Listening {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** Stops listening and cuts what is left. Idempotent. */
  close(): Promise<void>;
}

export async function listen(
  address: { readonly host: string; readonly port: number },
  flag: string,
  listener: RequestListener,
): Promise<Listening> {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    },
    listener,
  );
  const { host, port } = address;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        reject(
          new ListenError(
            'ADDRESS_IN_USE',
            `${host}:${port} is in use by another process. Stop it, or choose another address with ${flag} host:port`,
            error,
          ),
        );
      } else {
        reject(
          new ListenError(
            'ADDRESS_REFUSED',
            `Cannot listen on ${host}:${port} (${error.code ?? error.message}). Choose another address with ${flag} host:port`,
            error,
          ),
        );
      }
    });
    server.listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  const shown = host.includes(':') ? `[${host}]` : host;
  let closing: Promise<void> | null = null;
  return {
    server,
    port: bound,
    url: `http://${shown}:${bound}`,
    close() {
      closing ??= new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
      return closing;
    },
  };
}
