/** One run: builds the world of a seed, lets it work under faults, gives it peace, and judges what it left behind. */
import type { Clock } from '@throughline/log';
import { createMemoryStore } from '@throughline/log/memory';
import type { MemoryStore } from '@throughline/log/memory';
import { decodeText, META_PREFIX, readCheckpointHint, readEpochRecord } from '@throughline/protocol';
import type { LogRecord, Topic } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import { check } from './checker.ts';
import type { Finding } from './checker.ts';
import { calm, createConditions } from './conditions.ts';
import { faultNamed } from './faults.ts';
import type { FaultScene } from './fault-scene.ts';
import { forbidReal } from './forbid-real.ts';
import { Network } from './network.ts';
import { createGatewayNode, createWorkerNode } from './nodes.ts';
import type { Node, World } from './nodes.ts';
import { makePlan } from './draw-plan.ts';
import type { PlanOptions } from './draw-plan.ts';
import type { Plan } from './plan.ts';
import type { HistoryBreak, ProducedRecord, RunRecords, StruckFault } from './records-of-run.ts';
import { startProducer } from './sim-producer.ts';
import { SimClient } from './sim-client.ts';
import type { SimClientOptions } from './client-wire.ts';
import { createTrace } from './trace.ts';

export interface RunOptions extends PlanOptions {
  /** Keep the lines of the trace. Default: only their hash. */
  readonly keepTrace?: boolean;
}

export interface RunOutcome {
  readonly plan: Plan;
  readonly findings: readonly Finding[];
  readonly records: RunRecords;
  readonly hash: string;
  readonly lines: readonly string[];
  readonly steps: number;
}

/** Virtual milliseconds that all calls get to end after the last fault, and then some. */
const QUIET_MS = 60_000;
/** Longest drain of a worker, and then some. */
const SETTLE_MS = 4000;
/** A process looks every five seconds whether a topic was made anew, and a read may wait as long: who lived so long has seen it. */
const WITNESS_MS = 10_000;
/** Longer than any tool of the scripted host takes. */
const LONGEST_CALL_MS = 8000;
/** How soon a process that is down is started again. */
const RESTART_MS = 800;

export function runSeed(seed: number, options: RunOptions = {}): Promise<RunOutcome> {
  return runPlan(makePlan(seed, options), options);
}

/** The same for a plan that is told in full: what {@link shrink} leaves of a seed that fails. */
export async function runPlan(plan: Plan, options: Pick<RunOptions, 'keepTrace'> = {}): Promise<RunOutcome> {
  const forbidden = forbidReal();
  try {
    return await run(plan, options.keepTrace ?? false, forbidden.calls);
  } finally {
    forbidden.restore();
  }
}

async function run(plan: Plan, keepTrace: boolean, realCalls: readonly string[]): Promise<RunOutcome> {
  const { seed } = plan;
  const time = createVirtualTime({ seed });
  const trace = createTrace(() => time.nowMs(), keepTrace);
  const clock = time.clock('world');
  const store = createMemoryStore({
    clock: time.clock('store'),
    partitions: plan.partitions,
    leaseMs: 800,
    clusterId: 'simulated',
  });
  let isWindingDown = false;
  const archive = createArchive(store, store.clock.wallMs() - time.nowMs());
  const breaks: HistoryBreak[] = [];
  const struck: StruckFault[] = [];
  const world: World = {
    plan,
    time,
    trace,
    store,
    conditions: createConditions(plan.latency, createChance(seed, 'conditions')),
    ledger: [],
    isCalm: () => isWindingDown,
    bugs: [],
    memberships: new WeakMap(),
    onEffect: new Set(),
  };
  const onRejection = (reason: unknown): void => {
    world.bugs.push(
      `unhandled rejection: ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`,
    );
  };
  process.on('unhandledRejection', onRejection);
  try {
    trace.add('plan', JSON.stringify(plan));
    const gateways = Array.from({ length: plan.gateways }, (_, index) => createGatewayNode(world, `g${index}`));
    const workers = Array.from({ length: plan.workers }, (_, index) => createWorkerNode(world, `w${index}`));
    const nodes: readonly Node[] = [...gateways, ...workers];
    const network = new Network({
      clock,
      conditions: world.conditions,
      trace,
      addresses: gateways.map(({ name }) => name),
      listener: (address) => gateways.find(({ name }) => name === address)?.listener() ?? null,
    });
    const records: SimClientOptions['records'] = { sessions: [], exchanges: [], calls: [], gone: [] };
    const clients = plan.clients.map(
      (planned, index) =>
        new SimClient({
          name: `c${index}`,
          seed,
          clock: time.clock(`c${index}`),
          network,
          trace,
          gateways: gateways.map(({ name }) => name),
          planned,
          records,
          isWindingDown: () => isWindingDown,
        }),
    );
    const chance = createChance(seed, 'faults');
    supervise(nodes, clock, chance);
    // Where owners are not to be lost, clients come when the workers have shared the partitions out.
    if (!plan.faults.some((name) => faultNamed(name).harm === 'owner')) {
      const isStarted = (): boolean => nodes.every((node) => node.isUp());
      await time.runUntil(() => isStarted() || time.nowMs() > QUIET_MS, QUIET_MS * 2);
      await time.advance(SETTLE_MS);
    }
    for (const client of clients) void client.run();
    const produced: ProducedRecord[] = [];
    startProducer({ plan, store, clock: time.clock('producer'), trace, sessions: records.sessions, produced });
    const scene: Omit<FaultScene, 'chance'> = {
      world,
      clock,
      network,
      gateways,
      workers,
      archive: archive.take,
      breakAt(topic, partition, at, isTold) {
        archive.breakAt(topic, partition, at);
        const broken = { topic, partition, at, atMs: time.nowMs(), isTold, isForgotten: false };
        breaks.push(broken);
        const forget = (): void => {
          broken.isForgotten = time.nowMs() <= broken.atMs + WITNESS_MS;
        };
        onLastDeath(nodes, forget);
      },
      epoch: () => archive.epochs().at(-1)?.token ?? null,
    };
    await time.advance(chance.between(0, 1500));
    await strikeAll(plan, scene, struck, (ms) => time.advance(ms));

    // Peace: everything that is down comes back, what stands still goes on.
    calm(world.conditions);
    world.onEffect.clear();
    for (const node of nodes) {
      node.process()?.disarm();
      node.process()?.resume();
    }
    for (const worker of workers) worker.membership()?.distort(null);
    const quietMs = time.nowMs();
    trace.add('world', 'quiet');
    isWindingDown = true;
    await time.runUntil(
      () => clients.every((client) => client.isQuiet()) || time.nowMs() > quietMs + QUIET_MS,
      QUIET_MS * 2,
    );
    const bounded = async (work: Promise<unknown>): Promise<void> => {
      let done = false;
      void work.then(() => {
        done = true;
      });
      const last = time.nowMs() + QUIET_MS;
      await time.runUntil(() => done || time.nowMs() > last, QUIET_MS * 2);
    };
    // Calls that their clients gave up have to end as well.
    await time.advance(LONGEST_CALL_MS);
    const until = time.nowMs() + QUIET_MS;
    await time.runUntil(() => nodes.every((node) => node.isUp()) || time.nowMs() > until, QUIET_MS * 2);
    await bounded(Promise.all(clients.map((client) => client.rereadAll())));
    await bounded(Promise.all(clients.map((client) => client.checkGone())));
    const probes: Awaited<ReturnType<SimClient['probe']>>[] = [];
    await bounded(Promise.all(clients.map(async (client) => probes.push(await client.probe()))));
    for (const call of realCalls) world.bugs.push(`real ${call} was called`);
    archive.take();
    const left: RunRecords = {
      ...records,
      produced,
      seed,
      epochs: archive.epochs().map(({ token }) => token),
      epochsMs: archive.epochs().map(({ atMs }) => atMs),
      breaks,
      runs: world.ledger,
      partitions: archive.partitions(),
      evictedBelow: [],
      bugs: world.bugs,
      faults: [...plan.faults, ...(plan.instanceFailure > 0 ? ['instance-failure'] : [])],
      struck,
      quietMs,
      endMs: time.nowMs(),
    };
    const findings = [...check(left)];
    for (let index = 0; index < clients.length; index++) {
      const probe = probes[index];
      if (probe?.outcome?.kind !== 'result')
        findings.push({
          rule: 'SIM-LIVE',
          what: `a client could not call after all: ${JSON.stringify(probe ?? null)}`,
        });
    }
    return { plan, findings, records: left, hash: trace.hash(), lines: trace.lines, steps: trace.count };
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

/** Starts what is down, again and again, as an orchestrator does. */
function supervise(nodes: readonly Node[], clock: Clock, chance: Chance): void {
  for (const node of nodes) {
    const startIn = (ms: number): void => {
      clock.setTimer(ms, () => {
        node.start();
        node.process()?.onDeath(() => {
          startIn(chance.between(0, RESTART_MS));
        });
      });
    };
    startIn(chance.between(0, 300));
  }
}

/** Runs it when none of the processes that are alive now is any more. */
function onLastDeath(nodes: readonly Node[], run: () => void): void {
  const alive = nodes.map((node) => node.process()).filter((process) => process !== null);
  let count = alive.length;
  if (count === 0) run();
  for (const process of alive)
    process.onDeath(() => {
      if (--count === 0) run();
    });
}

/** Each strike has a chance of its own: it does the same whatever else strikes. */
async function strikeAll(
  { seed, strikes, activeMs }: Plan,
  scene: Omit<FaultScene, 'chance'>,
  struck: StruckFault[],
  advance: (ms: number) => Promise<void>,
): Promise<void> {
  const { clock, world } = scene;
  const startMs = clock.monoMs();
  for (const { atMs, fault, draw } of strikes) {
    await advance(Math.max(0, startMs + atMs - clock.monoMs()));
    const did = faultNamed(fault).strike({ ...scene, chance: createChance(seed, `strike ${draw}`) });
    if (did === null) continue;
    struck.push({ fault, atMs: clock.monoMs() });
    world.trace.add('fault', `${fault}: ${did}`);
  }
  await advance(Math.max(0, startMs + activeMs - clock.monoMs()));
}

interface Archive {
  take(): void;
  /** What lies at or above `at` is lost next. */
  breakAt(topic: Topic, partition: number, at: number): void;
  partitions(): RunRecords['partitions'];
  epochs(): readonly { readonly token: string; readonly atMs: number }[];
}

/** Everything that was ever in the log, also what retention and compaction took: read from the store before they strike. */
function createArchive(store: MemoryStore, zeroMs: number): Archive {
  const all = new Map<string, LogRecord[]>();
  const former = new Map<number, (readonly LogRecord[])[]>();
  /** What meta held each time that it was lost. */
  const lostMeta: (readonly LogRecord[])[] = [];
  const read = (topic: Topic, partition: number): LogRecord[] => {
    const name = `${topic}/${partition}`;
    const held = all.get(name) ?? [];
    all.set(name, held);
    const part = store.partition({ topic, partition });
    const from = Math.max((held.at(-1)?.offset ?? -1) + 1, part.bounds().start);
    if (from < part.bounds().end) held.push(...part.read(from, Number.MAX_SAFE_INTEGER).records);
    return held;
  };
  // They may become more.
  const numbers = (): number[] => Array.from({ length: store.description.partitions }, (_, partition) => partition);
  /** Of `events`, as of the newest look: what retention takes, it takes right after one. */
  const bounds = new Map<number, { readonly start: number; readonly end: number }>();
  const evictions = new Map<number, { readonly below: number; readonly end: number }[]>();
  const noteEvictions = (partition: number): void => {
    const { start, end } = store.partition({ topic: 'events', partition }).bounds();
    const before = bounds.get(partition);
    if (before !== undefined && start > before.start)
      evictions.set(partition, [...(evictions.get(partition) ?? []), { below: start, end: before.end }]);
    bounds.set(partition, { start, end });
  };
  const take = (): void => {
    for (const partition of numbers()) noteEvictions(partition);
    for (const partition of numbers())
      for (const topic of ['events', 'inbound', 'sessions'] as const) read(topic, partition);
    read('meta', 0);
  };
  return {
    take,
    breakAt(topic, partition, at) {
      take();
      const held = read(topic, partition);
      if (topic === 'events') former.set(partition, [...(former.get(partition) ?? []), held]);
      if (topic === 'meta') lostMeta.push(held);
      all.set(
        `${topic}/${partition}`,
        held.filter(({ offset }) => offset < at),
      );
    },
    partitions: () =>
      numbers().map((partition) => ({
        partition,
        events: read('events', partition),
        formerEvents: former.get(partition) ?? [],
        inbound: read('inbound', partition),
        inboundHeldFrom: store.partition({ topic: 'inbound', partition }).bounds().start,
        sessions: read('sessions', partition),
        evictions: evictions.get(partition) ?? [],
        toldMs: toldClaims([...lostMeta.flat(), ...read('meta', 0)], partition),
      })),
    epochs() {
      const epochs: { token: string; atMs: number }[] = [];
      // Where meta is made anew there is no epoch that the next one could follow.
      for (const held of [...lostMeta, read('meta', 0)]) {
        let epoch: string | null = null;
        for (const record of held) {
          const candidate = readEpochRecord(record);
          if (candidate === null || candidate.previous !== epoch) continue;
          epoch = candidate.token;
          epochs.push({ token: epoch, atMs: record.timestampMs - zeroMs });
        }
      }
      return epochs;
    },
  };
}

/** What a person types to see the run of a seed again. */
export function replayCommand(seed: number): string {
  return `SEED=${seed} npx vitest run tests/simulation, or node --conditions=@throughline/source tests/simulation/replay.ts ${seed}`;
}

/** When a checkpoint hint first named each claim of a partition. */
function toldClaims(meta: readonly LogRecord[], partition: number): ReadonlyMap<number, number> {
  const told = new Map<number, number>();
  for (const record of meta) {
    const name = record.key === null ? '' : decodeText(record.key);
    if (!name.startsWith(META_PREFIX.checkpoint) || !name.endsWith(`/${partition}`)) continue;
    for (const claim of readCheckpointHint(record)?.claims ?? [])
      if (!told.has(claim)) told.set(claim, record.timestampMs);
  }
  return told;
}
