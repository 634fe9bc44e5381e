/**
 * The table of faults. Each strikes once when called and undoes itself after a while, or is undone by the supervisor
 * when quiet is to be. A new fault is a new row.
 */
import type { Clock } from '@throughline/log';
import { EPOCH_LENGTH, makeEpoch, makeRecord, META_KEY } from '@throughline/protocol';
import type { Chance } from './chance.ts';
import type { AppendFate } from './conditions.ts';
import type { Network } from './network.ts';
import type { GatewayNode, Node, WorkerNode, World } from './nodes.ts';

export interface FaultScene {
  readonly world: World;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly network: Network;
  readonly gateways: readonly GatewayNode[];
  readonly workers: readonly WorkerNode[];
  /** Reads what is about to be evicted into the archive of the run. */
  archive(): void;
  /** As `archive`, and begins another history of the partition at `at`. */
  breakAt(topic: 'inbound' | 'events', partition: number, at: number, isTold: boolean): void;
  /** The epoch in force, by the archive. */
  epoch(): string | null;
}

export interface FaultRow {
  readonly what: string;
  /** What a run with this fault may show: `none`: clients notice nothing but reconnects. */
  readonly harm: 'none' | 'owner' | 'append' | 'history';
  /** Drawn apart from the others: the draws of a seed stay what they are without it. */
  readonly apart?: true;
  /** It breaks the history: drawn apart from the others, since every session ends by it. */
  readonly breaks?: true;
  /** Returns what it did, for the trace; `null` if there was nothing to strike. */
  strike(scene: FaultScene): string | null;
}

function up<T extends Node>(nodes: readonly T[], chance: Chance): T | null {
  const there = nodes.filter((node) => node.isUp() && node.process()?.isPaused() === false);
  return there.length === 0 ? null : chance.pick(there);
}

function crash(node: Node | null, { world, chance, clock }: FaultScene): string | null {
  if (node === null) return null;
  const process = node.process();
  if (process === null) return null;
  const steps = chance.whole(0, 200);
  process.killAfterSteps(steps);
  // It may have nothing to do for a while.
  clock.setTimer(1000, () => {
    if (!world.isCalm()) process.kill('killed');
  });
  return `kill ${process.name} within ${steps} steps`;
}

function pause(node: Node | null, { chance, clock }: FaultScene, longest: number): string | null {
  const process = node?.process() ?? null;
  if (process === null) return null;
  const ms = chance.happens(0.5) ? chance.between(10, 500) : chance.between(500, longest);
  process.pause();
  clock.setTimer(ms, () => {
    process.resume();
  });
  return `pause ${process.name} for ${ms.toFixed(0)} ms`;
}

function failAppends(fates: Partial<Record<AppendFate, number>>, { world, chance, clock }: FaultScene): string {
  const ms = chance.between(5, 400);
  world.conditions.appendFates = fates;
  clock.setTimer(ms, () => {
    if (world.conditions.appendFates === fates) world.conditions.appendFates = null;
  });
  return `appends end as ${JSON.stringify(fates)} for ${ms.toFixed(0)} ms`;
}

export const FAULTS = {
  'gateway-crash': {
    what: 'a gateway is killed between two of its steps',
    harm: 'none',
    strike: (scene) => crash(up(scene.gateways, scene.chance), scene),
  },
  'worker-crash': {
    what: 'a worker is killed between two of its steps',
    harm: 'owner',
    strike: (scene) => crash(up(scene.workers, scene.chance), scene),
  },
  'crash-at-append': {
    what: 'a process is killed when an append of it has taken effect, before it hears of it',
    harm: 'owner',
    strike({ world, chance }) {
      const wanted = chance.pick(['events', 'inbound', 'meta', 'sessions'] as const);
      let left = chance.whole(1, 12);
      const listener: Parameters<World['onEffect']['add']>[0] = (process, to) => {
        if (to.topic !== wanted || --left > 0) return;
        world.onEffect.delete(listener);
        process.kill(`killed at its append to ${to.topic}`);
      };
      world.onEffect.add(listener);
      return `kill at append ${left} to ${wanted}`;
    },
  },
  'gateway-pause': {
    what: 'a gateway stands still and goes on',
    harm: 'none',
    strike: (scene) => pause(up(scene.gateways, scene.chance), scene, 6000),
  },
  'worker-pause': {
    what: 'a worker stands still, beyond its lease or not, and goes on',
    harm: 'owner',
    strike: (scene) => pause(up(scene.workers, scene.chance), scene, 6000),
  },
  'gateway-stop': {
    what: 'a gateway is stopped as planned and started again',
    harm: 'none',
    strike({ gateways, chance }) {
      const node = up(gateways, chance);
      node?.stop();
      return node === null ? null : `stop ${node.name}`;
    },
  },
  'worker-stop': {
    what: 'a worker is stopped as planned and started again',
    harm: 'owner',
    strike({ workers, chance }) {
      const node = up(workers, chance);
      node?.stop();
      return node === null ? null : `stop ${node.name}`;
    },
  },
  'slow-append': {
    what: 'appends to one partition take effect late',
    harm: 'none',
    strike({ world, chance, clock }) {
      const topic = chance.pick(['events', 'inbound', 'sessions'] as const);
      const partition = chance.below(world.plan.partitions);
      const ms = chance.between(50, 1500);
      world.conditions.stalledUntil.set(`${topic}/${partition}`, clock.monoMs() + ms);
      return `${topic}/${partition} stalls for ${ms.toFixed(0)} ms`;
    },
  },
  'slow-process': {
    what: 'appends of one process take long',
    harm: 'none',
    strike({ world, gateways, workers, chance, clock }) {
      const process = up([...gateways, ...workers], chance)?.process() ?? null;
      if (process === null) return null;
      const slow = world.conditions.slowAppendMs;
      slow.set(process.name, chance.between(20, 300));
      clock.setTimer(chance.between(200, 2000), () => {
        slow.delete(process.name);
      });
      return `appends of ${process.name} are slow`;
    },
  },
  'connection-cut': {
    what: 'connections are cut, and both ends know',
    harm: 'none',
    strike({ network, chance }) {
      const cut = network.open().filter(() => chance.happens(0.5));
      for (const exchange of cut) exchange.cut('both');
      return cut.length === 0 ? null : `cut ${cut.length} connections`;
    },
  },
  'half-open': {
    what: 'connections are cut, and one end goes on to believe in them',
    harm: 'none',
    strike({ network, chance }) {
      const cut = network.open().filter(() => chance.happens(0.3));
      for (const exchange of cut) exchange.cut(chance.happens(0.5) ? 'client' : 'gateway');
      return cut.length === 0 ? null : `cut ${cut.length} connections on one side`;
    },
  },
  'member-churn': {
    what: 'the group forgets a worker that lives, and lets it in again',
    harm: 'owner',
    strike({ world, workers, chance }) {
      const member = up(workers, chance)?.member() ?? null;
      if (member === null) return null;
      world.store.controls.expireMember('workers', member);
      return `the group forgets ${member}`;
    },
  },
  'duplicate-post': {
    what: 'a proxy repeats POSTs through another gateway',
    harm: 'none',
    strike({ world, chance, clock }) {
      world.conditions.duplicatePost = 0.5;
      clock.setTimer(chance.between(100, 1500), () => {
        world.conditions.duplicatePost = 0;
      });
      return 'POSTs are repeated';
    },
  },
  'append-refused': {
    what: 'the log refuses appends for a while',
    harm: 'append',
    strike: (scene) => failAppends({ ok: 1, refused: 2 }, scene),
  },
  'append-unknown': {
    what: 'acks are lost: nobody knows whether the record is there, and some come late',
    harm: 'append',
    strike: (scene) => failAppends({ ok: 4, 'unknown-stored': 1, 'unknown-lost': 1, 'unknown-late': 1 }, scene),
  },
  'read-failure': {
    what: 'reads fail for a while',
    harm: 'none',
    strike({ world, chance, clock }) {
      world.conditions.readFailure = 0.5;
      clock.setTimer(chance.between(50, 600), () => {
        world.conditions.readFailure = 0;
      });
      return 'reads fail';
    },
  },
  compaction: {
    what: 'superseded records of meta and sessions disappear',
    harm: 'none',
    strike({ world, archive }) {
      archive();
      world.store.controls.compact('meta');
      world.store.controls.compact('sessions');
      return 'compact meta and sessions';
    },
  },
  'clock-jump': {
    what: 'the wall clock of a process jumps ahead or back',
    harm: 'none',
    strike({ gateways, workers, chance }) {
      const process = up([...gateways, ...workers], chance)?.process() ?? null;
      if (process === null) return null;
      const ms = Math.round(chance.between(-3_600_000, 3_600_000));
      process.jump(ms);
      return `the clock of ${process.name} jumps by ${ms} ms`;
    },
  },
  'epoch-rotation': {
    what: 'an operator declares the history broken: a new epoch begins',
    harm: 'history',
    strike({ world, chance, archive, epoch }) {
      // Rare: every session ends by it.
      if (!chance.happens(0.2)) return null;
      archive();
      const previous = epoch();
      if (previous === null) return null;
      const token = makeEpoch(chance.bytes(EPOCH_LENGTH));
      const { clusterId } = world.store.description;
      const value = JSON.stringify({ token, previous, clusterId, reason: 'simulated', atMs: 0 });
      world.store
        .partition({ topic: 'meta', partition: 0 })
        .append([makeRecord('epoch', META_KEY.epoch(token), value, {})], world.store.clock.wallMs());
      return `epoch ${token} follows ${previous}`;
    },
  },
  retention: {
    what: 'the oldest events are evicted, up to anywhere below the newest checkpoint',
    harm: 'history',
    strike({ world, chance, archive }) {
      const partition = chance.below(world.plan.partitions);
      const ref = { topic: 'events', partition } as const;
      archive();
      const { start, end } = world.store.partition(ref).bounds();
      const limit = newestHint(world, partition);
      const below = Math.min(limit, Math.floor(start + (end - start) * chance.unit()));
      if (below <= start) return null;
      world.store.controls.evictBefore(ref, below);
      return `evict events/${partition} below ${below}`;
    },
  },
  'inbound-retention': {
    what: 'all workers are killed, and what nobody has served is evicted before one is there again',
    harm: 'owner',
    apart: true,
    strike({ world, chance, clock, archive, workers }) {
      if (!chance.happens(0.3)) return null;
      for (const { process } of workers) process()?.kill('killed');
      const ref = { topic: 'inbound', partition: chance.below(world.plan.partitions) } as const;
      const [ms, share] = [chance.between(50, 700), chance.unit()];
      clock.setTimer(ms, () => {
        // An owner alive would wait for answers of clients that are gone.
        if (world.isCalm() || workers.some(({ process }) => process() !== null)) return;
        archive();
        const { start, end } = world.store.partition(ref).bounds();
        const below = start + Math.ceil((end - start) * share);
        world.store.controls.evictBefore(ref, below);
        world.trace.add('fault', `evict inbound/${ref.partition} below ${below}`);
      });
      return `kill all workers, evict from inbound/${ref.partition} in ${ms.toFixed(0)} ms`;
    },
  },
  'truncated-events': {
    what: 'a partition of events loses its newest records, some of them below what was told of it',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['events'], true),
  },
  'recreated-events': {
    what: 'the topic events is deleted and made anew',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['events'], false),
  },
  'truncated-inbound': {
    what: 'a partition of inbound loses its newest records, some of them below what was told of it',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['inbound'], true),
  },
  'recreated-inbound': {
    what: 'the topic inbound alone is deleted and made anew',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['inbound'], false),
  },
  'recreated-both': {
    what: 'both topics are deleted and made anew',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['events', 'inbound'], false),
  },
} as const satisfies Record<string, FaultRow>;

/** Once in a while, and only where something was told of what is lost: the rest nobody can know of. */
function breakHistory(
  { world, chance, epoch, breakAt }: FaultScene,
  topics: readonly ('inbound' | 'events')[],
  isPartial: boolean,
): string | null {
  const current = epoch();
  if (current === null || !chance.happens(0.3)) return null;
  const partitions = Array.from({ length: world.plan.partitions }, (_, partition) => partition);
  const did: string[] = [];
  for (const topic of topics)
    for (const partition of isPartial ? [chance.pick(partitions)] : partitions) {
      const ref = { topic, partition };
      const mark = newestMark(world, META_KEY.mark(current, topic, partition));
      if (mark === 0 && isPartial) continue;
      const at = isPartial ? chance.below(mark) : 0;
      if (at >= world.store.partition(ref).bounds().end) continue;
      breakAt(topic, partition, at, mark > 0);
      world.store.controls.truncate(ref, at);
      did.push(`${topic}/${partition} at ${at}`);
    }
  return did.length === 0 ? null : `lose ${did.join(', ')}`;
}

/** Up to where the newest mark of this key says that all was acknowledged. */
function newestMark(world: World, wanted: string): number {
  const part = world.store.partition({ topic: 'meta', partition: 0 });
  const text = new TextDecoder();
  let end = 0;
  for (const { key, value } of part.read(part.bounds().start, Number.MAX_SAFE_INTEGER).records)
    if (key !== null && value !== null && text.decode(key) === wanted)
      end = Math.max(end, (JSON.parse(text.decode(value)) as { end: number }).end);
  return end;
}

export type FaultName = keyof typeof FAULTS;

/** The row of a fault that a plan names. Throws on an unknown name. */
export function faultNamed(name: string): FaultRow {
  const row = (FAULTS as Readonly<Record<string, FaultRow>>)[name];
  if (row === undefined) throw new RangeError(`there is no fault ${name}`);
  return row;
}

/** Offset that the newest checkpoint hint in `meta` names: retention never comes near it in a partition that is served. */
function newestHint(world: World, partition: number): number {
  const part = world.store.partition({ topic: 'meta', partition: 0 });
  const suffix = META_KEY.checkpoint('', partition).split('/').slice(2).join('/');
  let offset = 0;
  const text = new TextDecoder();
  for (const { key, value } of part.read(part.bounds().start, Number.MAX_SAFE_INTEGER).records) {
    if (key === null || value === null) continue;
    const name = text.decode(key);
    if (name.startsWith('checkpoint/') && name.endsWith(`/${suffix}`))
      offset = Math.max(offset, (JSON.parse(text.decode(value)) as { offset: number }).offset);
  }
  return offset;
}
