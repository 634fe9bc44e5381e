/** Binding HTTP servers, with errors that name the address and the fix, and with the limits of each connection. SPEC: GW-LIMIT. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '@throughline/log';

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
/** Milliseconds for the head of a request, and for all of it; they are looked at every `check`. */
const PATIENCE = { headers: 15_000, request: 60_000, check: 2000 };
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** A connection that is answering when the server closes may write its last bytes. */
const CLOSE_GRACE_MS = 200;

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** The option that sets the address, for messages. */
  readonly flag: string;
  readonly clock: Clock;
  /** Sockets at most, those that send nothing included; more are closed at once. */
  readonly maxSockets: number;
  /** Default: 15 s for the head of a request, 60 s for all of it. */
  readonly patience?: typeof PATIENCE;
  /** What goes wrong later: sockets that cannot be accepted. */
  onError(error: Error): void;
}

export interface Listening {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** Stops listening, lets what is being answered write its last bytes for 200 ms, and cuts what is left. Idempotent. */
  close(): Promise<void>;
}

export async function listen(options: ListenOptions, listener: RequestListener): Promise<Listening> {
  const { host, port, flag, clock, maxSockets, onError, patience = PATIENCE } = options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: patience.headers,
      requestTimeout: patience.request,
      connectionsCheckingInterval: patience.check,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    },
    listener,
  );
  server.maxConnections = maxSockets;
  // Else Node would ask for the body before anybody has looked at the head.
  server.on('checkContinue', listener);
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      reject(listenError(error, `${host}:${port}`, flag));
    };
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      server.on('error', onError);
      resolve();
    });
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
        const cancel = clock.setTimer(CLOSE_GRACE_MS, () => {
          server.closeAllConnections();
        });
        // Closes idle connections as well.
        server.close(() => {
          cancel();
          resolve();
        });
      });
      return closing;
    },
  };
}

function listenError(error: NodeJS.ErrnoException, address: string, flag: string): ListenError {
  return error.code === 'EADDRINUSE'
    ? new ListenError(
        'ADDRESS_IN_USE',
        `${address} is in use by another process. Stop it, or choose another address with ${flag} host:port`,
        error,
      )
    : new ListenError(
        'ADDRESS_REFUSED',
        `Cannot listen on ${address} (${error.code ?? error.message}). Choose another address with ${flag} host:port`,
        error,
      );
}
