/** The worker role: joins the group, owns what it is assigned, hosts sessions, leaves in order. SPEC: WRK-*. */
import { abortable, ackWithin, answerWithin, deadline, errorText, WORKER_GROUP } from '@throughline/log';
import type { Clock, Membership } from '@throughline/log';
import { toBase64Url } from '@throughline/protocol';
import type { Partition } from '@throughline/protocol';
import { HistoryGuard, Meta, ReadOutages } from '@throughline/tail';
import { Heartbeat } from './claim/heartbeat.ts';
import { LagCommits } from './claim/lag-commits.ts';
import type { Progress } from './claim/lag-commits.ts';
import { MarkWriter } from './claim/mark-writer.ts';
import { CLOSE_DEADLINE_MS, PartitionOwner } from './claim/partition-owner.ts';
import type { WorkerConfig } from './config.ts';
import { ToolCatalog } from './consume/tool-catalog.ts';
import type { ToolEffects } from './consume/tool-catalog.ts';
import type { WorkerContext, WorkerDeps } from './context.ts';
import { InstanceSeats } from './instance-seats.ts';
import { RunningPlaces } from './running-places.ts';
import { WaitingShares } from './settle/waiting-shares.ts';

export interface StartWorkerDeps extends WorkerDeps {
  /** What a probe found of the servers' tools, by server: it spares the caution with tools whose annotations are not known yet. */
  readonly tools?: ReadonlyMap<string, ReadonlyMap<string, ToolEffects>>;
}

export interface Worker {
  /** Its name in the log: new with each start. */
  readonly name: string;
  /** Partitions that it owns now. */
  owned(): readonly Partition[];
  /** After a stop: partitions that it could not release, so successors wait until it has not been heard of for `deadAfterMs`. */
  unreleased(): readonly Partition[];
  /** It serves, and is not about to stop. */
  isReady(): boolean;
  /** `drain` (default): running calls get the drain time, partitions are released. Idempotent. */
  stop(options?: { readonly drain?: boolean }): Promise<void>;
}

const START_DEADLINE_MS = 30_000;
const READY_DEADLINE_MS = 15_000;
/** A worker that got no partition when it joined may get some soon, or may be one too many. */
const FIRST_ASSIGNMENT_MS = 1000;

/** Resolves when it owns what it was assigned first, after 15 s at the latest (a predecessor may still be alive), or has nothing to own. Rejects if the log does not answer. */
export async function startWorker(config: WorkerConfig, deps: StartWorkerDeps): Promise<Worker> {
  const { clock, random, logger, metrics, hosts } = deps;
  const log = answerWithin(deps.log, clock, config.appendTimeoutMs);
  const worker = `w-${toBase64Url(random.bytes(9))}`;
  const outages = new ReadOutages({ clock, logger: logger.child({ worker }) });
  const meta = new Meta({ log, clock, onError: outages.onError, onAnswer: outages.onAnswer });
  const start = deadline(clock, START_DEADLINE_MS);
  try {
    await abortable(meta.ensureEpoch(random, start.signal), start.signal);
  } catch (error) {
    await meta.close();
    throw error;
  } finally {
    start.dispose();
  }
  // Before any other listens to epochs: who begins anew asks it.
  const guard = new HistoryGuard({
    log,
    clock,
    random,
    meta,
    logger: logger.child({ worker }),
    onCount: (what, topic) => {
      metrics.add(`throughline_history_${what}_total`, 1, { topic });
    },
  });
  let epoch = meta.epoch() ?? '';
  metrics.set('throughline_epoch_info', 1, { epoch });
  const stopEpochs = meta.onEpoch((next) => {
    metrics.set('throughline_epoch_info', 0, { epoch });
    metrics.set('throughline_epoch_info', 1, { epoch: next });
    epoch = next;
    logger.warn('the epoch changed: sessions of the former one have ended', { worker, to: next });
    metrics.add('throughline_epoch_changes_total');
  });
  const end = async (): Promise<void> => {
    stopEpochs();
    guard.stop();
    await meta.close();
  };
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
    guard,
    outages,
    catalogs,
    places: new RunningPlaces(config.maxRunning, config.maxRunningPerPrincipal),
    shares: new WaitingShares(),
    seats: new InstanceSeats(
      { server: (name) => config.servers[name]?.maxSessions ?? 0, principal: config.maxSessionsPerPrincipal },
      () => {
        onSeats();
      },
    ),
  };
  // Gateways must not send new sessions to a worker that has no seat for them, nor shun one that has again.
  let wasFull = false;
  const onSeats = (): void => {
    if (isFull(context) === wasFull) return;
    wasFull = !wasFull;
    void heartbeat.beat();
  };
  const owners = new Map<Partition, PartitionOwner>();
  /** Those that are being left; a partition that comes back waits for them. */
  const leaving = new Map<Partition, PartitionOwner>();
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
  let isAssigned = false;
  let stopping: Promise<void> | null = null;
  let unreleased: readonly Partition[] = [];
  const assign = (assigned: readonly Partition[]): void => {
    if (stopping !== null) return;
    isAssigned ||= assigned.length > 0;
    logger.info('assigned', { worker, partitions: assigned });
    for (const [partition, owner] of owners) {
      if (assigned.includes(partition)) continue;
      owners.delete(partition);
      leaving.set(partition, owner);
      void owner.leave(config.drainMs).then(() => {
        if (leaving.get(partition) === owner) leaving.delete(partition);
      });
    }
    for (const partition of assigned) {
      if (owners.has(partition)) continue;
      const after = leaving.get(partition)?.leave(config.drainMs) ?? Promise.resolve();
      owners.set(partition, new PartitionOwner({ context, partition, after, onOwned }));
    }
    for (const wake of changed) wake();
  };
  await heartbeat.beat();
  let membership: Membership;
  try {
    membership = await log.join({ group: WORKER_GROUP, member: worker, onChange: assign });
    if (!isAssigned) assign(membership.assigned());
  } catch (error) {
    await Promise.all([...owners.values()].map((owner) => owner.abandon()));
    await heartbeat.stop();
    await end();
    throw error;
  }

  const marks = new MarkWriter(context, ownedPartitions);
  const lagCommits = new LagCommits(context, membership, () => {
    const progress = new Map<Partition, Progress>();
    for (const [partition, owner] of owners) {
      const made = owner.progress();
      if (made !== null) progress.set(partition, made);
    }
    return progress;
  });

  const isReady = (): boolean => isAssigned && [...owners.values()].every((owner) => owner.isOwned());
  await waitUntil(() => isAssigned, changed, clock, FIRST_ASSIGNMENT_MS);
  if (isAssigned) await waitUntil(isReady, changed, clock, READY_DEADLINE_MS);

  const stop = async (drain: boolean): Promise<void> => {
    const all = [...owners.values(), ...leaving.values()];
    const drainMs = drain ? config.drainMs : 0;
    const served = ownedPartitions();
    marks.stop();
    // Whatever does not come to its end by then is given up: when the heartbeats have stopped, nobody waits for it.
    const limit = deadline(clock, drain ? drainMs + 2 * CLOSE_DEADLINE_MS : 0);
    limit.signal.addEventListener('abort', () => {
      for (const owner of all) void owner.abandon();
    });
    try {
      await heartbeat.leave();
      // Before the group is left: nobody may commit afterwards.
      await lagCommits.stop();
      const left = ackWithin(clock, CLOSE_DEADLINE_MS, membership.leave()).catch((error: unknown) => {
        logger.warn('leaving the group failed', { worker, error: errorText(error) });
      });
      await Promise.all([left, ...all.map((owner) => owner.leave(drainMs))]);
    } finally {
      limit.dispose();
      const held = all.filter((owner) => owner.mayHold()).map(({ partition }) => partition);
      unreleased = [...new Set(held)].sort((a, b) => a - b);
      // Nobody may serve for a while: what was released and not told could be lost unseen.
      await Promise.all([marks.write(served), heartbeat.stop()]);
      await end();
    }
  };
  return {
    name: worker,
    owned: ownedPartitions,
    unreleased: () => unreleased,
    isReady: () => stopping === null,
    stop(options) {
      stopping ??= stop(options?.drain ?? true);
      return stopping;
    },
  };
}

function isFull({ config, seats }: WorkerContext): boolean {
  return Object.keys(config.servers).every((name) => seats.isFull(name));
}

/** Resolves when `isTrue`, asked again at each change, or after `ms`. */
async function waitUntil(isTrue: () => boolean, changes: Set<() => void>, clock: Clock, ms: number): Promise<void> {
  const limit = deadline(clock, ms);
  await new Promise<void>((resolve) => {
    const check = (): void => {
      if (!isTrue() && !limit.signal.aborted) return;
      changes.delete(check);
      resolve();
    };
    changes.add(check);
    limit.signal.addEventListener('abort', check, { once: true });
    check();
  });
  limit.dispose();
}
