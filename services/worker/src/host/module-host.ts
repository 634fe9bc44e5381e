/** Hosts SDK servers in this process: an ES module whose default export makes one server a session. */
import { deadline, errorText, settlesWithin } from '@throughline/log';
import { HostError } from './host.ts';
import type { HostCallbacks, HostContext, HostSession, McpHost } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { resolveModule } from './resolve-module.ts';
import { createSessionSet } from './session-set.ts';
import { createSessionTransport } from './session-transport.ts';
import type { SdkTransport } from './session-transport.ts';

export interface ModuleHostOptions {
  /** A path relative to `cwd`, or a package. */
  readonly module: string;
  /** Default: the working directory of the process. */
  readonly cwd?: string;
}

export interface ModuleHostLimits {
  /** Milliseconds for importing the module, and for making and connecting one server. Default 10000. */
  readonly openMs: number;
  /** Milliseconds that a server's own `close` gets. Default 2000. */
  readonly closeMs: number;
}

/** What the factory of a module gets. */
export interface ModuleContext {
  readonly sessionId: string;
  readonly principal: string;
  /** Aborts when the session ends: release what the server holds. */
  readonly signal: AbortSignal;
}

/** `McpServer` and `Server` of SDK v1 and v2 fit this. */
interface SdkServer {
  connect(transport: SdkTransport): Promise<void>;
  close(): Promise<void>;
}
type Factory = (context: ModuleContext) => unknown;

const DEFAULT_LIMITS: ModuleHostLimits = { openMs: 10_000, closeMs: 2000 };

function isSdkServer(value: unknown): value is SdkServer {
  if (typeof value !== 'object' || value === null) return false;
  const { connect, close } = value as Record<string, unknown>;
  return typeof connect === 'function' && typeof close === 'function';
}

/** The default export; a CommonJS module that was compiled from ES syntax has it one level deeper. */
function factoryOf(exported: Readonly<Record<string, unknown>>): Factory | undefined {
  const first = exported['default'];
  if (typeof first === 'function') return first as Factory;
  if (typeof first !== 'object' || first === null) return undefined;
  const second = (first as Record<string, unknown>)['default'];
  return typeof second === 'function' ? (second as Factory) : undefined;
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
}

async function importFactory(module: string, cwd: string): Promise<Factory> {
  let exported: Readonly<Record<string, unknown>>;
  const found = resolveModule(module, cwd);
  try {
    exported = (await import(/* @vite-ignore */ found)) as Record<string, unknown>;
  } catch (error) {
    // Neither a file nor a package: what Node says names a place that is not the user's.
    if (found === module && isNotFound(error))
      throw new HostError(
        'HOST_CONFIG',
        `module "${module}" is neither a file in ${cwd} nor a package that is installed there. A file is written with its path, for example ./server.js.`,
        error,
      );
    throw new HostError(
      'HOST_CONFIG',
      `module "${module}" (from ${cwd}) cannot be imported: ${errorText(error)}`,
      error,
    );
  }
  const factory = factoryOf(exported);
  if (factory !== undefined) return factory;
  const names = Object.keys(exported).join(', ') || 'nothing';
  throw new HostError(
    'HOST_CONFIG',
    `module "${module}" has no default export that is a function (it exports ${names}); ` +
      'write: export default (ctx) => { const server = new McpServer(…); return server; }',
  );
}

/** Runs the factory and connects; rejects with a `HostError`. */
async function makeServer(
  factory: Factory,
  module: string,
  context: ModuleContext,
  sdk: SdkTransport,
): Promise<SdkServer> {
  let server: unknown;
  try {
    server = await factory(context);
  } catch (error) {
    throw new HostError('HOST_CONFIG', `the factory of module "${module}" failed: ${errorText(error)}`, error);
  }
  if (!isSdkServer(server)) {
    throw new HostError(
      'HOST_CONFIG',
      `the factory of module "${module}" did not return an MCP server; return an McpServer or Server of the MCP SDK`,
    );
  }
  try {
    await server.connect(sdk);
  } catch (error) {
    throw new HostError(
      'HOST_CONFIG',
      `the server of module "${module}" cannot be connected: ${errorText(error)}; return a new server from each call of the factory`,
      error,
    );
  }
  return server;
}

/**
 * A host for an in-process server. The module is imported once, at the first `open`; the factory runs once a session.
 * `open` rejects with `HOST_CONFIG` if there is no such module, no factory, or the factory fails, and with
 * `HOST_TIMEOUT` if it does not finish in time. Messages are given to the server in the order of `deliver`, and to the
 * callbacks in the order in which the server sends them; a handler that awaits its sends feels the backpressure.
 * SPEC: HOST-MODULE-*.
 */
export function createModuleHost(
  options: ModuleHostOptions,
  deps: HostDeps,
  limits: Partial<ModuleHostLimits> = {},
): McpHost {
  const { openMs, closeMs } = { ...DEFAULT_LIMITS, ...limits };
  const cwd = options.cwd ?? process.cwd();
  const sessions = createSessionSet();
  let imported: Promise<Factory> | undefined;

  /** Settles as `work` does, or rejects with HOST_TIMEOUT or HOST_GONE; `late` gets a value that comes after that. */
  const within = <T>(work: Promise<T>, what: string, signal: AbortSignal, late: (value: T) => void): Promise<T> =>
    new Promise((resolve, reject) => {
      const limit = deadline(deps.clock, openMs, signal);
      let isLate = false;
      const onAbort = (): void => {
        isLate = true;
        const error = limit.expired()
          ? new HostError(
              'HOST_TIMEOUT',
              `${what} of module "${options.module}" did not finish in ${String(openMs)} ms`,
            )
          : new HostError('HOST_GONE', 'the session ended while its server was starting');
        limit.dispose();
        reject(error);
      };
      limit.signal.addEventListener('abort', onAbort, { once: true });
      if (limit.signal.aborted) onAbort();
      work.then(
        (value) => {
          limit.dispose();
          if (isLate) late(value);
          else resolve(value);
        },
        (error: unknown) => {
          limit.dispose();
          reject(error instanceof Error ? error : new Error(errorText(error)));
        },
      );
    });

  const closeServer = async (server: SdkServer): Promise<void> => {
    // A server may throw at once as well as reject.
    const closing = Promise.resolve().then(() => server.close());
    await settlesWithin(deps.clock, closing, closeMs);
  };

  const start = async (context: HostContext, callbacks: HostCallbacks): Promise<HostSession> => {
    imported ??= importFactory(options.module, cwd);
    const factory = await within(imported, 'the import', context.signal, () => undefined);
    const ended = new AbortController();
    const transport = createSessionTransport({
      sessionId: context.sessionId,
      callbacks,
      logger: deps.logger.child({ sessionId: context.sessionId }),
      onClosedByServer() {
        ended.abort();
        callbacks.onGone('the server closed its connection');
      },
    });
    const moduleContext: ModuleContext = {
      sessionId: context.sessionId,
      principal: context.principal,
      signal: AbortSignal.any([context.signal, ended.signal]),
    };
    const abandon = (server: SdkServer): void => {
      transport.end();
      void closeServer(server);
    };
    let server: SdkServer;
    try {
      const making = makeServer(factory, options.module, moduleContext, transport.sdk);
      server = await within(making, 'the factory', context.signal, abandon);
    } catch (error) {
      ended.abort();
      throw error;
    }
    return {
      deliver(message, extra) {
        if (ended.signal.aborted) return Promise.reject(new HostError('HOST_GONE', 'the session has ended'));
        transport.deliver(message, extra);
        return Promise.resolve();
      },
      async close() {
        ended.abort();
        transport.end();
        await closeServer(server);
      },
    };
  };

  return {
    kind: 'module',
    open: (context: HostContext, callbacks: HostCallbacks) =>
      sessions.open(context, callbacks, (guarded) => start(context, guarded)),
    close: () => sessions.close(),
  };
}
