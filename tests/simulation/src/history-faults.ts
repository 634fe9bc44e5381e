/** Faults of the history itself: what is gone, evicted, cut off, or begun anew. */
import { EPOCH_LENGTH, makeEpoch, makeRecord, META_KEY } from '@throughline/protocol';
import type { FaultRow, FaultScene } from './fault-scene.ts';
import type { World } from './nodes.ts';
import type { HistoryBreak } from './records-of-run.ts';

export const HISTORY_FAULTS = {
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
      const partition = chance.below(world.store.description.partitions);
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
  'retention-of-checkpoint': {
    what: 'the newest checkpoint is evicted with all that is as old, as often as not while no worker is alive',
    harm: 'history',
    apart: true,
    strike({ world, chance, archive, workers }) {
      if (!chance.happens(0.4)) return null;
      const isAlone = chance.happens(0.5);
      const ref = { topic: 'events', partition: chance.below(world.store.description.partitions) } as const;
      const { start, end } = world.store.partition(ref).bounds();
      const hint = newestHint(world, ref.partition);
      const below = Math.min(end, hint + 1 + chance.below(3));
      if (below <= start) return null;
      if (isAlone) for (const { process } of workers) process()?.kill('killed');
      archive();
      evictAsOld(world, ref.partition, below);
      return `evict events/${ref.partition} below ${below}, ${isAlone ? 'all workers killed' : 'under its owner'}`;
    },
  },
  'inbound-retention': {
    what: 'all workers are killed, and what nobody has served is evicted before one is there again',
    harm: 'owner',
    apart: true,
    strike({ world, chance, clock, archive, workers }) {
      if (!chance.happens(0.3)) return null;
      for (const { process } of workers) process()?.kill('killed');
      const ref = { topic: 'inbound', partition: chance.below(world.store.description.partitions) } as const;
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
  'recreated-sessions': {
    what: 'the topic sessions is deleted and made anew',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['sessions'], false),
  },
  'recreated-meta': {
    what: 'the topic meta is deleted and made anew',
    harm: 'history',
    breaks: true,
    strike: (scene) => breakHistory(scene, ['meta'], false),
  },
} as const satisfies Record<string, FaultRow>;

/** Once in a while, and only where something was told of what is lost: the rest nobody can know of. */
function breakHistory(
  { world, chance, epoch, breakAt }: FaultScene,
  topics: readonly HistoryBreak['topic'][],
  isPartial: boolean,
): string | null {
  const current = epoch();
  if (current === null || !chance.happens(0.3)) return null;
  const partitions = Array.from({ length: world.store.description.partitions }, (_, partition) => partition);
  const did: string[] = [];
  for (const topic of topics)
    for (const partition of topic === 'meta' ? [0] : isPartial ? [chance.pick(partitions)] : partitions) {
      const ref = { topic, partition };
      // Nothing is told of the others: who misses what it read of them knows.
      const isMarked = topic === 'events' || topic === 'inbound';
      const mark = isMarked ? newestMark(world, META_KEY.mark(current, topic, partition)) : 0;
      if (mark === 0 && isPartial) continue;
      const at = isPartial ? chance.below(mark) : 0;
      if (at >= world.store.partition(ref).bounds().end) continue;
      breakAt(topic, partition, at, mark > 0);
      world.store.controls.truncate(ref, at);
      did.push(`${topic}/${partition} at ${at}`);
    }
  if (did.length === 0) return null;
  if (!isPartial)
    for (const topic of topics) world.conditions.madeAnew.set(topic, (world.conditions.madeAnew.get(topic) ?? 0) + 1);
  return `lose ${did.join(', ')}`;
}

/** As retention by time does: what clients asked before is gone as well. */
function evictAsOld(world: World, partition: number, below: number): void {
  const { store } = world;
  const events = store.partition({ topic: 'events', partition });
  const oldestMs = events.read(below - 1, Number.MAX_SAFE_INTEGER).records[0]?.timestampMs ?? 0;
  const ref = { topic: 'inbound', partition } as const;
  const { start, end } = store.partition(ref).bounds();
  const held = store.partition(ref).read(start, Number.MAX_SAFE_INTEGER).records;
  store.controls.evictBefore(ref, held.find(({ timestampMs }) => timestampMs > oldestMs)?.offset ?? end);
  store.controls.evictBefore({ topic: 'events', partition }, below);
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

/** What the newest checkpoint hint in `meta` names: retention never comes near it in a partition that is served. */
function newestHint(world: World, partition: number): number {
  const part = world.store.partition({ topic: 'meta', partition: 0 });
  const suffix = META_KEY.checkpoint('', partition).split('/').slice(2).join('/');
  let newest = 0;
  const text = new TextDecoder();
  for (const { key, value } of part.read(part.bounds().start, Number.MAX_SAFE_INTEGER).records) {
    if (key === null || value === null) continue;
    const name = text.decode(key);
    if (!name.startsWith('checkpoint/') || !name.endsWith(`/${suffix}`)) continue;
    newest = Math.max(newest, (JSON.parse(text.decode(value)) as { offset: number }).offset);
  }
  return newest;
}
