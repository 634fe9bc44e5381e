/** Faults of processes: killed, paused, stopped, with another time, or with another idea of who owns what. */
import { pickUp } from './fault-scene.ts';
import type { FaultRow, FaultScene } from './fault-scene.ts';
import type { Node, WorkerNode, World } from './nodes.ts';
import type { AwaitKind } from './sim-process.ts';

/** What a process of each kind waits for. */
const AWAITS = {
  gateway: ['append', 'read', 'request'],
  worker: ['append', 'read', 'membership', 'host'],
} as const satisfies Record<Node['kind'], readonly AwaitKind[]>;

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

/** Strikes at the k-th time that something for which the process waits has come about, before it hears of it. */
function atAwait(scene: FaultScene, what: string, strike: (node: Node) => void): string | null {
  const { gateways, workers, chance } = scene;
  const node = pickUp<Node>([...gateways, ...workers], chance);
  const process = node?.process() ?? null;
  if (node === null || process === null) return null;
  const kind = chance.pick<AwaitKind>(AWAITS[node.kind]);
  const count = chance.whole(1, 12);
  process.strikeAt(kind, count, () => {
    strike(node);
  });
  return `${what} ${process.name} at its ${kind} number ${count} from now`;
}

/** Tells a worker for a while that it has one partition more, or less, than the group gave it. */
function misassign(
  { chance, clock }: FaultScene,
  node: WorkerNode,
  change: Parameters<NonNullable<ReturnType<WorkerNode['membership']>>['distort']>[0],
): string {
  const membership = node.membership();
  const ms = chance.happens(0.5) ? chance.between(50, 800) : chance.between(800, 5000);
  membership?.distort(change);
  clock.setTimer(ms, () => {
    membership?.distort(null);
  });
  return `for ${ms.toFixed(0)} ms`;
}

export const PROCESS_FAULTS = {
  'gateway-crash': {
    what: 'a gateway is killed between two of its steps',
    harm: 'none',
    strike: (scene) => crash(pickUp(scene.gateways, scene.chance), scene),
  },
  'worker-crash': {
    what: 'a worker is killed between two of its steps',
    harm: 'owner',
    strike: (scene) => crash(pickUp(scene.workers, scene.chance), scene),
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
  'crash-at-await': {
    what: 'a process is killed when what it waits for has come about, before it hears of it',
    harm: 'owner',
    strike: (scene) =>
      atAwait(scene, 'kill', (node) => {
        node.process()?.kill('killed at an await');
      }),
  },
  'all-gone': {
    what: 'all gateways, all workers, or both are killed at once',
    harm: 'owner',
    strike({ gateways, workers, chance }) {
      // Now and then: a run of nothing but starts shows little.
      if (!chance.happens(0.3)) return null;
      const who = chance.pick(['gateways', 'workers', 'all'] as const);
      const nodes: readonly Node[] = [...(who === 'workers' ? [] : gateways), ...(who === 'gateways' ? [] : workers)];
      for (const node of nodes) node.process()?.kill('killed with all others');
      return `kill ${who}`;
    },
  },
  'gateway-pause': {
    what: 'a gateway stands still and goes on',
    harm: 'none',
    strike: (scene) => pause(pickUp(scene.gateways, scene.chance), scene, 6000),
  },
  'worker-pause': {
    what: 'a worker stands still, beyond its lease or not, and goes on',
    harm: 'owner',
    strike: (scene) => pause(pickUp(scene.workers, scene.chance), scene, 6000),
  },
  'pause-at-await': {
    what: 'a process stands still between two of its steps, beyond its lease, and goes on when it has a successor',
    harm: 'owner',
    strike: (scene) =>
      atAwait(scene, 'pause', (node) => {
        const process = node.process();
        if (process === null || scene.world.isCalm()) return;
        process.pause();
        scene.clock.setTimer(scene.chance.between(900, 6000), () => {
          process.resume();
        });
      }),
  },
  'gateway-stop': {
    what: 'a gateway is stopped as planned and started again',
    harm: 'none',
    strike({ gateways, chance }) {
      const node = pickUp(gateways, chance);
      node?.stop();
      return node === null ? null : `stop ${node.name}`;
    },
  },
  'worker-stop': {
    what: 'a worker is stopped as planned and started again',
    harm: 'owner',
    strike({ workers, chance }) {
      const node = pickUp(workers, chance);
      node?.stop();
      return node === null ? null : `stop ${node.name}`;
    },
  },
  'member-churn': {
    what: 'the group forgets a worker that lives, and lets it in again',
    harm: 'owner',
    strike({ world, workers, chance }) {
      const member = pickUp(workers, chance)?.member() ?? null;
      if (member === null) return null;
      world.store.controls.expireMember('workers', member);
      return `the group forgets ${member}`;
    },
  },
  'two-owners': {
    what: 'the group gives a partition to two workers at once',
    harm: 'owner',
    strike(scene) {
      const { workers, chance } = scene;
      const [one, other] = [pickUp(workers, chance), pickUp(workers, chance)];
      const has = one?.membership()?.assigned() ?? [];
      if (one === null || other === null || one === other || has.length === 0) return null;
      const partition = chance.pick(has);
      return `${other.name} is given ${partition} of ${one.name} as well ${misassign(scene, other, { add: partition })}`;
    },
  },
  'no-owner': {
    what: 'the group takes a partition from its worker and gives it to nobody',
    harm: 'owner',
    strike(scene) {
      const node = pickUp(scene.workers, scene.chance);
      const has = node?.membership()?.assigned() ?? [];
      if (node === null || has.length === 0) return null;
      const partition = scene.chance.pick(has);
      return `${partition} is taken from ${node.name} ${misassign(scene, node, { remove: partition })}`;
    },
  },
  'clock-jump': {
    what: 'the wall clock of a process jumps ahead or back',
    harm: 'none',
    strike({ gateways, workers, chance }) {
      const process = pickUp([...gateways, ...workers], chance)?.process() ?? null;
      if (process === null) return null;
      const ms = Math.round(chance.between(-3_600_000, 3_600_000));
      process.jump(ms);
      return `the clock of ${process.name} jumps by ${ms} ms`;
    },
  },
} as const satisfies Record<string, FaultRow>;
