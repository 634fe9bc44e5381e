/**
 * The composition root: puts log, hosts, worker and gateway together for a role. Nothing stays behind if a step fails:
 * what was started is stopped again, last first.
 */
import type { AccessChange } from '@throughline/gateway';
import type { GatewayConfig } from '@throughline/gateway/config';
import { answerWithin } from '@throughline/log';
import type { Clock, Log, Random } from '@throughline/log';
import type { Logger, Metrics } from '@throughline/telemetry';
import type { ServerConfig, WorkerConfig } from '@throughline/worker/config';
import { HostError } from '@throughline/worker/host';
import type { McpHost, ToolTraits } from '@throughline/worker/host';
import { describeStart } from './describe-start.ts';
import { readEmbeddedSecret } from './embedded-secret.ts';
import { readLocalSecret } from './local-secret.ts';
import { followAccess } from './follow-access.ts';
import type { Role } from './option-table.ts';
import type { Address } from './parse-value.ts';
import { refreshWithin } from './refresh-within.ts';
import type { LogSettings, Settings } from './settings.ts';
import { StopStack } from './stop-stack.ts';
import type { StopOptions } from './stop-stack.ts';
import { UnreleasedError } from './unreleased-error.ts';

export interface Stoppable {
  stop(options?: { readonly drain?: boolean }): Promise<void>;
}

export interface StartedWorker extends Stoppable {
  isReady(): boolean;
  /** After its stop. */
  unreleased(): readonly number[];
}

export interface StartedGateway extends Stoppable {
  readonly url: string;
  readonly adminUrl: string | null;
  changeAccess(change: AccessChange): void;
  /** Looks at the files of TLS now. */
  readFilesNow(): void;
}

/** What is put together; tests put in other parts. */
export interface Parts {
  readonly clock: Clock;
  readonly random: Random;
  openLog(settings: LogSettings, by: { readonly role: Role; readonly logger: Logger }): Promise<Log>;
  /** Does no I/O. */
  createHost(name: string, server: ServerConfig, logger: Logger): McpHost;
  /** Starts the server once, and learns its tools. Rejects with what to do if it does not answer, and when `signal` aborts. */
  probe(host: McpHost, signal: AbortSignal): Promise<ReadonlyMap<string, ToolTraits>>;
  startGateway(
    config: GatewayConfig,
    deps: {
      readonly log: Log;
      readonly clock: Clock;
      readonly random: Random;
      readonly logger: Logger;
      readonly metrics: Metrics;
      renderMetrics(): Promise<string>;
    },
  ): Promise<StartedGateway>;
  startWorker(
    config: WorkerConfig,
    deps: {
      readonly log: Log;
      readonly clock: Clock;
      readonly random: Random;
      readonly logger: Logger;
      readonly metrics: Metrics;
      readonly hosts: ReadonlyMap<string, McpHost>;
      /** By server: whether a call left by another worker may be run again is decided before anybody lists tools here. */
      readonly tools: ReadonlyMap<string, ReadonlyMap<string, ToolTraits>>;
    },
  ): Promise<StartedWorker>;
  /** The admin port of a process that has no gateway. */
  startAdmin(
    address: Address,
    options: {
      readonly clock: Clock;
      isReady(): boolean;
      renderMetrics(): Promise<string>;
      onError(error: Error): void;
    },
  ): Promise<{ readonly url: string; close(): Promise<void> }>;
}

export interface Telemetry {
  readonly logger: Logger;
  readonly metrics: Metrics;
  renderMetrics(): Promise<string>;
}

export interface Running {
  /** One line for people: what is served, where, from which log. */
  readonly ready: string;
  /** Looks now at the files that are read again while it runs. */
  readFilesNow(): void;
  stop(options: StopOptions): Promise<void>;
}

/**
 * Rejects with `StartError`, `HostError` or `LogError`, or whatever a part failed with; then nothing runs any more.
 * `signal` ends the wait for servers that are slow to start.
 */
export async function startRole(
  role: Role,
  settings: Settings,
  parts: Parts,
  telemetry: Telemetry,
  signal: AbortSignal,
): Promise<Running> {
  const stack = new StopStack();
  try {
    return await startAll(role, settings, parts, telemetry, signal, stack);
  } catch (error) {
    // The first failure is the one to report; what fails while stopping follows from it.
    await stack.stop({ drain: false }).catch((reason: unknown) => {
      telemetry.logger.warn('start.cleanup-failed', { error: reason });
    });
    throw error;
  }
}

async function startAll(
  role: Role,
  settings: Settings,
  parts: Parts,
  telemetry: Telemetry,
  signal: AbortSignal,
  stack: StopStack,
): Promise<Running> {
  const { clock, random } = parts;
  const { logger, metrics } = telemetry;
  const opened = await parts.openLog(settings.log, { role, logger });
  const log = answerWithin(opened, clock, settings.log.appendTimeoutMs);
  stack.push(() => log.close());
  const common = { log, clock, random, metrics };
  const { retentionMs } = log.description;
  if (settings.log.isRetentionSet && retentionMs < settings.log.retentionMs)
    logger.warn('log.retention-short', { promisedMs: settings.log.retentionMs, heldMs: retentionMs });

  const secrets = role === 'worker' ? [] : (settings.secrets ?? (await makeSecrets(settings, log, random)));
  const workerLogger = logger.child({ role: 'worker' });
  const hosts = new Map<string, McpHost>();
  const tools = new Map<string, ReadonlyMap<string, ToolTraits>>();
  if (role !== 'gateway') {
    for (const [name, server] of Object.entries(settings.worker.servers)) {
      const host = parts.createHost(name, server, workerLogger);
      stack.push(() => host.close());
      hosts.set(name, host);
    }
    // Before anything listens: a server that does not start is found while nobody can call it yet.
    for (const [name, host] of hosts) {
      try {
        logger.info('server.starting', { server: name, kind: host.kind });
        tools.set(name, await parts.probe(host, signal));
      } catch (error) {
        throw error instanceof HostError ? new HostError(error.code, `server ${name}: ${error.message}`, error) : error;
      }
    }
  }
  let gateway: StartedGateway | undefined;
  let followed: ReturnType<typeof followAccess> = [];
  if (role !== 'worker') {
    gateway = await parts.startGateway(
      {
        ...settings.gateway,
        refreshMs: refreshWithin(settings.gateway.refreshMs, retentionMs),
        secrets: secrets.map((secret) => new Uint8Array(secret)),
      },
      { ...common, logger: logger.child({ role: 'gateway' }), renderMetrics: () => telemetry.renderMetrics() },
    );
    // Before the worker, so that it is stopped after it: answers of calls that finish in the drain reach their clients.
    stack.push(stopOf(gateway));
    const changed = gateway;
    followed = followAccess(settings.accessFiles, (change) => changed.changeAccess(change), { clock, logger });
    stack.push(() => {
      for (const following of followed) following.stop();
      return Promise.resolve();
    });
  }
  if (role !== 'gateway') {
    let worker: StartedWorker | null = null;
    if (role === 'worker' && settings.workerAdmin !== null) {
      // Before the worker: it is alive long before it is ready.
      const admin = await parts.startAdmin(settings.workerAdmin, {
        clock,
        isReady: () => worker?.isReady() ?? false,
        renderMetrics: () => telemetry.renderMetrics(),
        onError: (error) => {
          workerLogger.error('a socket could not be accepted', { error: error.message });
        },
      });
      stack.push(() => admin.close());
      workerLogger.info('worker admin is listening', { adminUrl: admin.url });
    }
    worker = await parts.startWorker(settings.worker, { ...common, logger: workerLogger, hosts, tools });
    stack.push(stopOfWorker(worker, settings.worker.deadAfterMs));
  }
  return {
    ready: describeStart(role, settings, gateway),
    readFilesNow() {
      gateway?.readFilesNow();
      for (const following of followed) void following.look();
    },
    stop: (options) => stack.stop(options),
  };
}

async function makeSecrets(settings: Settings, log: Log, random: Random): Promise<readonly Uint8Array[]> {
  return settings.log.location.kind === 'kafka'
    ? readLocalSecret(settings.localSecretFile)
    : [await readEmbeddedSecret(log, random)];
}

/** Rejects with `UnreleasedError` where successors have to wait. */
function stopOfWorker(worker: StartedWorker, deadAfterMs: number): (options: StopOptions) => Promise<void> {
  return async (options) => {
    await worker.stop(options);
    const partitions = worker.unreleased();
    if (partitions.length > 0) throw new UnreleasedError(partitions, deadAfterMs);
  };
}

function stopOf(part: Stoppable): (options: StopOptions) => Promise<void> {
  return (options) => part.stop(options);
}
