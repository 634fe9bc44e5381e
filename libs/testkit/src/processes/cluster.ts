/** Gateways and workers on one log: what a small installation is, with the means to kill and to replace parts of it. */
import { makeFilePlace } from './log-place.ts';
import type { LogPlace, LogPlaceOptions, MakeLogPlace } from './log-place.ts';
import { makeScratchFolder } from './scratch-folder.ts';
import { startThroughline } from './throughline-process.ts';
import type { GatewayPorts, ThroughlineProcess } from './throughline-process.ts';

export interface ClusterOptions extends LogPlaceOptions {
  /** Default: a file of the embedded log. */
  readonly log?: MakeLogPlace;
  /** Default 2. */
  readonly gateways?: number;
  /** Default 2. */
  readonly workers?: number;
  /** Options of every process. */
  readonly args?: readonly string[];
  readonly gatewayArgs?: readonly string[];
  readonly workerArgs?: readonly string[];
  /** For Node, in every process. */
  readonly nodeOptions?: string;
  /** One pair a gateway, kept by whatever runs in its place. Default: free ones. */
  readonly gatewayPorts?: readonly GatewayPorts[];
  /** Called with the working directory before anything starts. */
  prepare?(folder: string): void;
}

export interface Cluster extends AsyncDisposable {
  readonly folder: string;
  readonly log: LogPlace;
  /** Whatever runs in each place now, or ran there last. */
  readonly gateways: readonly ThroughlineProcess[];
  readonly workers: readonly ThroughlineProcess[];
  /** Endpoints of the gateways that run. */
  urls(): readonly string[];
  /** Starts another process in this place. The former one must have ended. */
  startGateway(place: number): Promise<ThroughlineProcess>;
  startWorker(place: number): Promise<ThroughlineProcess>;
  /** The process whose claim on a partition is the newest, by what the workers logged; `null` if none is known. */
  ownerOf(partition: number): ThroughlineProcess | null;
  /** Logs of all processes, for the message of a failed test. */
  logs(): string;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = makeScratchFolder();
  const log = await (options.log ?? makeFilePlace)(folder.path, options).catch((error: unknown) => {
    folder[Symbol.dispose]();
    throw error;
  });
  const all: ThroughlineProcess[] = [];
  const gateways: ThroughlineProcess[] = [];
  const workers: ThroughlineProcess[] = [];
  const start = async (role: 'gateway' | 'worker', place: number): Promise<ThroughlineProcess> => {
    const own = role === 'gateway' ? options.gatewayArgs : options.workerArgs;
    const args = [...log.args(role, place), ...(options.args ?? []), ...(own ?? [])];
    const ports = role === 'gateway' ? options.gatewayPorts?.[place] : undefined;
    const env = options.nodeOptions === undefined ? {} : { NODE_OPTIONS: options.nodeOptions };
    const started = await startThroughline(role, { args, folder: folder.path, env, ...(ports && { ports }) });
    all.push(started);
    (role === 'gateway' ? gateways : workers)[place] = started;
    return started;
  };
  const end = async (): Promise<void> => {
    await Promise.all(all.map((part) => part[Symbol.asyncDispose]()));
    folder[Symbol.dispose]();
  };
  try {
    options.prepare?.(folder.path);
    const places = (count: number): number[] => Array.from({ length: count }, (_, place) => place);
    const outcomes = await Promise.allSettled([
      ...places(options.gateways ?? 2).map((place) => start('gateway', place)),
      ...places(options.workers ?? 2).map((place) => start('worker', place)),
    ]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason as Error;
  } catch (error) {
    await end();
    throw error;
  }
  return {
    folder: folder.path,
    log,
    gateways,
    workers,
    urls: () => gateways.filter((gateway) => gateway.isRunning()).map(({ url }) => url),
    startGateway: (place) => start('gateway', place),
    startWorker: (place) => start('worker', place),
    ownerOf: (partition) => ownerAmong(workers, partition),
    logs: () => all.map(({ role, pid, logs }) => `— ${role} ${pid}\n${logs()}`).join('\n'),
    [Symbol.asyncDispose]: end,
  };
}

interface ClaimedEvent {
  readonly partition: number;
  readonly claim: number;
  readonly valid: boolean;
}

function ownerAmong(workers: readonly ThroughlineProcess[], partition: number): ThroughlineProcess | null {
  let newest: { readonly claim: number; readonly worker: ThroughlineProcess } | null = null;
  for (const worker of workers) {
    for (const line of worker.logs().split('\n')) {
      if (!line.includes('"event":"claimed"')) continue;
      const { partition: of, claim, valid } = JSON.parse(line) as ClaimedEvent;
      if (of === partition && valid && claim > (newest?.claim ?? -1)) newest = { claim, worker };
    }
  }
  return newest?.worker ?? null;
}
