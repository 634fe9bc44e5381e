/** Faults of the log as processes see it: late, silent, refusing, or leaving them in doubt. */
import type { AppendFate } from './conditions.ts';
import { pickUp, strikeHalf } from './fault-scene.ts';
import type { FaultRow, FaultScene } from './fault-scene.ts';

function failAppends(fates: Partial<Record<AppendFate, number>>, { world, chance, clock }: FaultScene): string {
  const ms = chance.between(5, 400);
  world.conditions.appendFates = fates;
  clock.setTimer(ms, () => {
    if (world.conditions.appendFates === fates) world.conditions.appendFates = null;
  });
  return `appends end as ${JSON.stringify(fates)} for ${ms.toFixed(0)} ms`;
}

/** One process is slow for a while, by up to `mostMs`. @param did for the trace. */
function slowOne(
  { world, gateways, workers, chance, clock }: FaultScene,
  how: 'slowAppendMs' | 'slowCompletionMs',
  mostMs: number,
  did: (name: string) => string,
): string | null {
  const process = pickUp([...gateways, ...workers], chance)?.process() ?? null;
  if (process === null) return null;
  const slow = world.conditions[how];
  slow.set(process.name, chance.between(20, mostMs));
  clock.setTimer(chance.between(200, 2000), () => {
    slow.delete(process.name);
  });
  return did(process.name);
}

const MOST_PARTITIONS = 5;

export const LOG_FAULTS = {
  'slow-append': {
    what: 'appends to one partition take effect late',
    harm: 'none',
    strike({ world, chance, clock }) {
      const topic = chance.pick(['events', 'inbound', 'sessions'] as const);
      const partition = chance.below(world.store.description.partitions);
      const ms = chance.between(50, 1500);
      world.conditions.stalledUntil.set(`${topic}/${partition}`, clock.monoMs() + ms);
      return `${topic}/${partition} stalls for ${ms.toFixed(0)} ms`;
    },
  },
  'slow-process': {
    what: 'appends of one process take long',
    harm: 'none',
    strike: (scene) => slowOne(scene, 'slowAppendMs', 300, (name) => `appends of ${name} are slow`),
  },
  'slow-completions': {
    what: 'a process hears late what the log did, and not in the order in which it did it',
    harm: 'none',
    strike: (scene) => slowOne(scene, 'slowCompletionMs', 400, (name) => `${name} hears late and out of order`),
  },
  'cut-from-log': {
    what: 'the way between the log and one process, or all, is cut for a while, one way or both',
    harm: 'append',
    strike({ world, gateways, workers, chance, clock }) {
      const all = [...gateways, ...workers];
      const one = pickUp(all, chance);
      const cut = chance.happens(0.25) ? all : one === null ? [] : [one];
      const way = chance.pick(['out', 'back', 'both'] as const);
      const ms = chance.happens(0.5) ? chance.between(50, 1000) : chance.between(1000, 5000);
      const names = cut.flatMap((node) => node.process()?.name ?? []);
      for (const name of names) world.conditions.cutOff.set(name, { untilMs: clock.monoMs() + ms, way });
      return names.length === 0 ? null : `cut ${names.join(', ')} from the log (${way}) for ${ms.toFixed(0)} ms`;
    },
  },
  'append-refused': {
    what: 'the log refuses appends for a while',
    harm: 'append',
    strike: (scene) => failAppends({ ok: 1, refused: 2 }, scene),
  },
  'log-full': {
    what: 'the log has no room for a while',
    harm: 'append',
    strike: (scene) => failAppends({ full: 1 }, scene),
  },
  'append-unknown': {
    what: 'acks are lost: nobody knows whether the record is there, and some come late',
    harm: 'append',
    strike: (scene) => failAppends({ ok: 4, 'unknown-stored': 1, 'unknown-lost': 1, 'unknown-late': 1 }, scene),
  },
  'read-failure': {
    what: 'reads fail for a while',
    harm: 'none',
    strike: strikeHalf('readFailure', [50, 600], 'reads fail'),
  },
  'partitions-added': {
    what: 'partitions are added, and the group shares all of them out anew',
    harm: 'owner',
    apart: true,
    strike({ world, chance }) {
      const before = world.store.description.partitions;
      const count = Math.min(MOST_PARTITIONS, before + chance.whole(1, 2));
      if (count === before || !chance.happens(0.5)) return null;
      world.store.controls.addPartitions(count);
      return `${before} partitions become ${count}`;
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
} as const satisfies Record<string, FaultRow>;
