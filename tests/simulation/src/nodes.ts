/** The shipped gateway and worker as simulated processes that can be started, killed, paused, stopped and started again. */
import { GatewayConfigSchema, startGatewayCore } from '@throughline/gateway';
import type { GatewayCore } from '@throughline/gateway';
import type { Log, PartitionRef } from '@throughline/log';
import type { MemoryStore } from '@throughline/log/memory';
import type { RecordInput } from '@throughline/protocol';
import { noMetrics } from '@throughline/telemetry';
import type { Logger } from '@throughline/telemetry';
import type { VirtualTime } from '@throughline/testkit';
import { startWorker, WorkerConfigSchema } from '@throughline/worker';
import type { Worker } from '@throughline/worker';
import { createChance } from './chance.ts';
import type { Conditions } from './conditions.ts';
import type { Listener } from './network.ts';
import type { Plan } from './plan.ts';
import type { RunOfTool } from './records-of-run.ts';
import { createScriptedHost, TOOLS } from './scripted-host.ts';
import { openSimLog } from './sim-log.ts';
import type { DistortableMembership } from './sim-membership.ts';
import { createSimProcess } from './sim-process.ts';
import type { SimProcess } from './sim-process.ts';
import type { Trace } from './trace.ts';

export interface World {
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly store: MemoryStore;
  readonly conditions: Conditions;
  readonly ledger: RunOfTool[];
  readonly bugs: string[];
  /** No fault may strike any more. */
  isCalm(): boolean;
  /** Of the workers that have joined. */
  readonly memberships: WeakMap<SimProcess, DistortableMembership>;
  /** Set by a fault: called when an append of a process has taken effect. */
  readonly onEffect: Set<(process: SimProcess, to: PartitionRef, records: readonly RecordInput[]) => void>;
}

export interface Node {
  readonly name: string;
  readonly kind: 'gateway' | 'worker';
  /** The life in progress; `null` while it is down. */
  process(): SimProcess | null;
  /** Started and at work. */
  isUp(): boolean;
  start(): void;
  /** Planned: drains, leaves, ends. */
  stop(): void;
  isStopping(): boolean;
}

export interface GatewayNode extends Node {
  listener(): Listener | null;
}

export interface WorkerNode extends Node {
  /** Name in the group; `null` while it is down. */
  member(): string | null;
  /** What it believes to be assigned; `null` before it has joined. */
  membership(): DistortableMembership | null;
}

const SECRET = new Uint8Array(32).fill(7);
const SERVERS = { kept: 'restore', fleeting: 'terminate' } as const;

const PROBED = new Map(
  Object.entries(TOOLS).map(
    ([name, { readOnly = false, idempotent = false }]) => [name, { readOnly, idempotent }] as const,
  ),
);

interface Life<T> {
  readonly process: SimProcess;
  readonly log: Log;
  running: T | null;
}

/** What gateways and workers have in common: lives, one after the other. */
function createNode<T>(
  world: World,
  name: string,
  kind: Node['kind'],
  begin: (process: SimProcess, log: Log) => Promise<T>,
  end: (running: T) => Promise<void>,
): Node & { life(): Life<T> | null } {
  const { time, trace, store, conditions, plan } = world;
  const skews = createChance(plan.seed, `${name} skew`);
  let lives = 0;
  let life: Life<T> | null = null;
  let isStopping = false;
  return {
    name,
    kind,
    life: () => life,
    process: () => life?.process ?? null,
    isUp: () => life !== null && life.running !== null && !isStopping,
    isStopping: () => isStopping,
    start() {
      if (life !== null) return;
      const process = createSimProcess({
        name: `${name}.${++lives}`,
        time,
        trace,
        seed: plan.seed,
        wallSkewMs: Math.round(skews.between(-500, 500)),
      });
      const log = openSimLog({
        store,
        time,
        process,
        conditions,
        trace,
        onEffect: (...effect) => {
          for (const listener of world.onEffect) listener(...effect);
        },
        onJoin: (joined, membership) => world.memberships.set(joined, membership),
      });
      const mine: Life<T> = { process, log, running: null };
      life = mine;
      isStopping = false;
      process.onDeath(() => {
        if (life === mine) life = null;
      });
      trace.add(process.name, 'starts');
      begin(process, log).then(
        (running) => {
          mine.running = running;
          trace.add(process.name, 'is up');
        },
        (error: unknown) => {
          process.kill(`start failed: ${String(error)}`);
        },
      );
    },
    stop() {
      const stopped = life;
      if (stopped?.running == null || isStopping) return;
      isStopping = true;
      trace.add(stopped.process.name, 'stops');
      end(stopped.running)
        .then(() => stopped.log.close())
        .then(
          () => {
            stopped.process.kill('stopped');
          },
          (error: unknown) => {
            world.bugs.push(`${stopped.process.name} did not stop: ${String(error)}`);
            stopped.process.kill('stop failed');
          },
        );
    },
  };
}

export function createGatewayNode(world: World, name: string): GatewayNode {
  const { plan, trace } = world;
  const config = GatewayConfigSchema.parse({
    servers: Object.keys(SERVERS),
    secrets: [SECRET],
    retryMs: 60,
    appendTimeoutMs: 2500,
    deadAfterMs: 1000,
    ...plan.gateway,
  });
  const node = createNode<GatewayCore>(
    world,
    name,
    'gateway',
    (process, log) =>
      startGatewayCore(config, {
        log,
        clock: process.clock,
        random: process.chance,
        logger: bugLogger(world, process),
        metrics: noMetrics,
      }),
    async (core) => {
      await core.drain();
      // As the HTTP server does: what is left is cut.
      await core.stop();
    },
  );
  return {
    ...node,
    listener() {
      const life = node.life();
      if (life?.running == null) return null;
      const core = life.running;
      return {
        process: life.process,
        handle: (request, sink) =>
          core.handle(request, sink).catch((error: unknown) => {
            world.bugs.push(`${life.process.name}: handle rejected: ${String(error)}`);
            trace.add(life.process.name, `handle rejected: ${String(error)}`);
          }),
      };
    },
  };
}

export function createWorkerNode(world: World, name: string): WorkerNode {
  const { plan, time, ledger } = world;
  const config = WorkerConfigSchema.parse({
    servers: Object.fromEntries(
      Object.entries(SERVERS).map(([server, onOwnerLoss]) => [server, { stdio: 'simulated', onOwnerLoss }]),
    ),
    heartbeatMs: 200,
    deadAfterMs: 1000,
    appendTimeoutMs: 2500,
    ...plan.worker,
  });
  const members = new WeakMap<SimProcess, string>();
  const node = createNode<Worker>(
    world,
    name,
    'worker',
    async (process, log) => {
      const host = createScriptedHost({
        process,
        ledger,
        nowMs: () => time.nowMs(),
        instanceFailure: plan.instanceFailure,
      });
      const worker = await startWorker(config, {
        log,
        clock: process.clock,
        random: process.chance,
        logger: bugLogger(world, process),
        metrics: noMetrics,
        hosts: new Map(Object.keys(SERVERS).map((server) => [server, host] as const)),
        ...(plan.isProbed ? { tools: new Map(Object.keys(SERVERS).map((server) => [server, PROBED] as const)) } : {}),
      });
      members.set(process, worker.name);
      return worker;
    },
    (worker) => worker.stop(),
  );
  return {
    ...node,
    member() {
      const process = node.process();
      return process === null ? null : (members.get(process) ?? null);
    },
    membership() {
      const process = node.process();
      return process === null ? null : (world.memberships.get(process) ?? null);
    },
  };
}

/** What a process logs goes into the trace; what it logs as an error is a bug of its own, unless the log made it. */
function bugLogger({ trace, bugs }: World, process: SimProcess): Logger {
  const say =
    (level: string) =>
    (event: string, fields: object = {}): void => {
      const text = `${event} ${JSON.stringify(fields)}`;
      trace.add(process.name, `${level} ${withoutStacks(event, fields)}`);
      if (level === 'error') bugs.push(`${process.name}: ${text}`);
    };
  const logger: Logger = {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    child: () => logger,
  };
  return logger;
}

/** Stacks name the frames of whoever runs the simulation, so they are no part of the run. */
function withoutStacks(event: string, fields: object): string {
  const cut = (_name: string, value: unknown): unknown =>
    typeof value === 'string' ? value.split('\n    at ')[0] : value;
  return `${event} ${JSON.stringify(fields, cut)}`;
}
