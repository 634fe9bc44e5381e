/** The worker role: joins the group, owns what it is assigned, hosts sessions, leaves in order. SPEC: WRK-*. */
import { deadline } from '@throughline/log';
import type { Membership } from '@throughline/log';
import { toBase64Url } from '@throughline/protocol';
import type { Partition } from '@throughline/protocol';
import { Meta } from '@throughline/tail';
import { Heartbeat } from './claim/heartbeat.ts';
import { PartitionOwner } from './claim/partition-owner.ts';
import type { WorkerConfig } from './config.ts';
import { ToolCatalog } from './consume/tool-catalog.ts';
import type { ToolEffects } from './consume/tool-catalog.ts';
import { WorkerLoad } from './context.ts';
import type { WorkerContext, WorkerDeps } from './context.ts';

export interface StartWorkerDeps extends WorkerDeps {
  /** What a probe found of the servers' tools, by server: it spares the caution with tools whose annotations are not known yet. */
  readonly tools?: ReadonlyMap<string, ReadonlyMap<string, ToolEffects>>;
}

export interface Worker {
  /** Its name in the log: new with each start. */
  readonly name: string;
  /** Partitions that it owns now. */
  owned(): readonly Partition[];
  /** `drain` (default): running calls get the drain time, partitions are released. Idempotent. */
  stop(options?: { readonly drain?: boolean }): Promise<void>;
}

const GROUP = 'workers';
const START_DEADLINE_MS = 30_000;
const READY_DEADLINE_MS = 15_000;

/** Resolves when it owns what it was assigned first, or after 15 s (a predecessor may still be alive). Rejects if the log does not answer. */
export async function startWorker(config: WorkerConfig, deps: StartWorkerDeps): Promise<Worker> {
  const { log, clock, random, logger, metrics, hosts } = deps;
  const worker = `w-${toBase64Url(random.bytes(9))}`;
  const meta = new Meta({
    log,
    clock,
    onError: (error) => {
      logger.warn('log read failed; trying again', {
        topic: 'meta',
        error: error instanceof Error ? error.message : String(error),
      });
    },
  });
  const start = deadline(clock, START_DEADLINE_MS);
  try {
    await meta.ensureEpoch(random, start.signal);
  } catch (error) {
    await meta.close();
    throw error;
  } finally {
    start.dispose();
  }
  const catalogs = new Map(
    [...hosts.keys()].map((server) => [server, new ToolCatalog(deps.tools?.get(server) ?? [])] as const),
  );
  const context: WorkerContext = {
    log,
    clock,
    random,
    logger: logger.child({ worker }),
    metrics,
    hosts,
    config,
    worker,
    meta,
    catalogs,
    load: new WorkerLoad(),
  };
  const owners = new Map<Partition, PartitionOwner>();
  const leaving = new Set<Promise<void>>();
  const ownedPartitions = (): readonly Partition[] =>
    [...owners].filter(([, owner]) => owner.isOwned()).map(([partition]) => partition);
  const heartbeat = new Heartbeat(context, () => (isFull(context) ? [] : ownedPartitions()));
  const changed = new Set<() => void>();
  const onOwned = (): void => {
    metrics.set('throughline_worker_owned_partitions', ownedPartitions().length);
    void heartbeat.beat().then(() => {
      for (const wake of changed) wake();
    });
  };
  let assignedOnce = false;
  let stopping: Promise<void> | null = null;
  const assign = (assigned: readonly Partition[]): void => {
    if (stopping !== null) return;
    assignedOnce = true;
    logger.info('assigned', { worker, partitions: assigned });
    for (const [partition, owner] of owners) {
      if (assigned.includes(partition)) continue;
      owners.delete(partition);
      track(leaving, owner.leave(config.drainMs));
    }
    for (const partition of assigned)
      if (!owners.has(partition)) owners.set(partition, new PartitionOwner({ context, partition, onOwned }));
    for (const wake of changed) wake();
  };
  await heartbeat.beat();
  let membership: Membership;
  try {
    membership = await log.join({ group: GROUP, member: worker, onChange: assign });
    if (!assignedOnce) assign(membership.assigned());
  } catch (error) {
    await heartbeat.stop();
    await meta.close();
    throw error;
  }

  const ready = deadline(clock, READY_DEADLINE_MS);
  await new Promise<void>((resolve) => {
    const check = (): void => {
      const isReady = assignedOnce && [...owners.values()].every((owner) => owner.isOwned());
      if (!isReady && !ready.signal.aborted) return;
      changed.delete(check);
      resolve();
    };
    changed.add(check);
    ready.signal.addEventListener('abort', check, { once: true });
    check();
  });
  ready.dispose();

  const stop = async (drain: boolean): Promise<void> => {
    await heartbeat.leave();
    await membership.leave();
    const drainMs = drain ? config.drainMs : 0;
    await Promise.all([...[...owners.values()].map((owner) => owner.leave(drainMs)), ...leaving]);
    await heartbeat.stop();
    await meta.close();
  };
  return {
    name: worker,
    owned: ownedPartitions,
    stop(options) {
      stopping ??= stop(options?.drain ?? true);
      return stopping;
    },
  };
}

function isFull({ config, load }: WorkerContext): boolean {
  return Object.entries(config.servers).every(
    ([name, { maxSessions }]) => (load.sessionsByServer.get(name) ?? 0) >= maxSessions,
  );
}

function track(set: Set<Promise<void>>, work: Promise<void>): void {
  set.add(work);
  void work.finally(() => set.delete(work));
}
