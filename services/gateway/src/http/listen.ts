/** Binding HTTP servers, with errors that name the address and the fix, and with the limits of each connection. SPEC: GW-LIMIT. */
import { createServer } from 'node:http';
import type { RequestListener, Server, ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { errorText } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import type { Following } from '../follow-files.ts';
import { followTls, readTls } from './tls-files.ts';
import type { TlsFiles, TlsTexts } from './tls-files.ts';

/** `ADDRESS_IN_USE`, `ADDRESS_REFUSED` (not allowed, not here), `TLS_REFUSED` (its files cannot be read, or do not belong together). */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly code: 'ADDRESS_IN_USE' | 'ADDRESS_REFUSED' | 'TLS_REFUSED';
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
  /** Plain HTTP without. */
  readonly tls?: { readonly files: TlsFiles; readonly logger: Logger };
  /** What goes wrong later: sockets that cannot be accepted. */
  onError(error: Error): void;
}

export interface Listening {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  /** Looks at the files of TLS now, not only every 10 s. */
  readFilesNow(): void;
  /** Stops listening, lets what is being answered write its last bytes for 200 ms, and cuts what is left. Idempotent. */
  close(): Promise<void>;
}

export async function listen(options: ListenOptions, listener: RequestListener): Promise<Listening> {
  const { host, port, flag, clock, maxSockets, onError, patience = PATIENCE } = options;
  const limits = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: patience.headers,
    requestTimeout: patience.request,
    connectionsCheckingInterval: patience.check,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
  };
  const { server, tlsFiles } = await createFor(options, limits, listener);
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
  const scheme = options.tls === undefined ? 'http' : 'https';
  let closing: Promise<void> | null = null;
  return {
    server,
    port: bound,
    url: `${scheme}://${shown}:${bound}`,
    readFilesNow() {
      void tlsFiles?.look();
    },
    close() {
      tlsFiles?.stop();
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

async function createFor(
  { tls, clock }: ListenOptions,
  limits: ServerOptions,
  listener: RequestListener,
): Promise<{ readonly server: Server; readonly tlsFiles: Following | null }> {
  if (tls === undefined) return { server: createServer(limits, listener), tlsFiles: null };
  const { files, logger } = tls;
  let texts: TlsTexts;
  try {
    texts = await readTls(files);
  } catch (error) {
    throw new ListenError(
      'TLS_REFUSED',
      `--tls-cert ${files.certFile} and --tls-key ${files.keyFile} cannot be used (${errorText(error)}). Name a certificate and its key, both in PEM`,
      error,
    );
  }
  const server = createTlsServer(
    { ...limits, ...texts, handshakeTimeout: limits.headersTimeout ?? PATIENCE.headers },
    listener,
  );
  return { server, tlsFiles: followTls(server, files, texts, { clock, logger }) };
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
