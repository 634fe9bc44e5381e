/** `throughline owners`: whose each partition is, and how much work waits in it. */
import { errorText, hasLogCode, WORKER_GROUP } from '@throughline/log';
import type { Log } from '@throughline/log';
import type { Offset, Partition } from '@throughline/protocol';
import type { Settings } from '../settings.ts';
import { findLiving, readMetaFacts } from './meta-facts.ts';
import type { MetaFacts } from './meta-facts.ts';
import { withLog, withMeta } from './open-operator-log.ts';
import type { OperatorProcess } from './operator-process.ts';
import { readPartitionFacts } from './partition-facts.ts';
import type { PartitionFacts } from './partition-facts.ts';
import { renderJson, renderTable } from './table.ts';
import { formatAge, formatTime } from './time-text.ts';

export interface OwnerRow {
  readonly partition: Partition;
  /** `none`: nobody claimed it in this epoch. `released`: its worker left in order. `gone`: no sign of life. */
  readonly state: 'owned' | 'none' | 'released' | 'gone' | 'contested' | 'unknown';
  readonly worker: string | null;
  readonly claim: Offset | null;
  readonly sinceMs: number | null;
  /** Offsets of `inbound` from the lowest open request to the end; null: nothing was committed yet. */
  readonly lag: number | null;
  readonly committed: Offset | null;
  readonly inboundEnd: Offset | null;
  readonly open: number | null;
  readonly oldestOpenMs: number | null;
  readonly checkpoint: { readonly offset: Offset; readonly atMs: number } | null;
  /** Other living workers that claim it, or say that they have it. */
  readonly rivals: readonly string[];
  /** Why the partition is not known. */
  readonly error: string | null;
}

const UNKNOWN_OWNER = {
  state: 'unknown',
  worker: null,
  claim: null,
  sinceMs: null,
  lag: null,
  inboundEnd: null,
  open: null,
  oldestOpenMs: null,
  checkpoint: null,
  rivals: [],
} as const;

/** Pure. `facts` is the error's text where the partition could not be read. */
export function describeOwner(
  partition: Partition,
  facts: PartitionFacts | string,
  {
    meta,
    living,
    committed,
  }: {
    readonly meta: MetaFacts;
    readonly living: ReadonlySet<string>;
    readonly committed: ReadonlyMap<Partition, Offset> | null;
  },
): OwnerRow {
  const todo = committed?.get(partition) ?? null;
  if (typeof facts === 'string') return { ...UNKNOWN_OWNER, partition, committed: todo, error: facts };
  const { owner, voidClaims, inbound, open, checkpoint } = facts;
  const saying = [...meta.workers].filter(
    ([name, { record }]) =>
      living.has(name) && record.epoch === meta.inForce?.token && record.partitions.includes(partition),
  );
  const rivals = [
    ...new Set([
      ...saying.map(([name]) => name),
      ...voidClaims.map(({ worker }) => worker).filter((w) => living.has(w)),
    ]),
  ].filter((name) => name !== owner?.worker);
  const isAlive = owner !== null && living.has(owner.worker);
  const state =
    owner === null
      ? 'none'
      : owner.released
        ? 'released'
        : !isAlive
          ? 'gone'
          : rivals.length > 0
            ? 'contested'
            : 'owned';
  return {
    partition,
    state,
    worker: owner?.worker ?? null,
    claim: owner?.claim ?? null,
    sinceMs: owner?.sinceMs ?? null,
    lag: todo === null ? null : Math.max(0, inbound.end - todo),
    committed: todo,
    inboundEnd: inbound.end,
    open: open?.count ?? null,
    oldestOpenMs: open?.lowestAtMs ?? null,
    checkpoint,
    rivals,
    error: null,
  };
}

/** Time that one partition may take; many sessions since its newest checkpoint take their time. */
const PARTITION_MS = 20_000;

export interface Ownership {
  readonly meta: MetaFacts;
  readonly living: ReadonlySet<string>;
  /** As of `LivingWorkers`. */
  readonly skewMs: number | null;
  readonly rows: readonly OwnerRow[];
  readonly facts: ReadonlyMap<Partition, PartitionFacts>;
  /** A right is missing to read a partition. */
  readonly isDenied: boolean;
}

/** Errors: those of `Log.read` on `meta`; what fails of one partition is in its row. */
export async function readOwnership(log: Log, settings: Settings, self: OperatorProcess): Promise<Ownership> {
  const facts = await readMetaFacts(log, self.signal);
  const partitions = Array.from({ length: log.description.partitions }, (_, partition) => partition);
  const known = new Map<Partition, PartitionFacts>();
  const problems = new Map<Partition, string>();
  let isDenied = false;
  const epoch = facts.inForce?.token ?? null;
  // Signs of life are waited for meanwhile.
  const finding = findLiving(log, self.clock, facts, settings.gateway.deadAfterMs, self.signal);
  finding.catch(() => undefined);
  const committed = await log.committed(WORKER_GROUP).catch(() => null);
  if (epoch !== null)
    await withMeta(log, self, (meta) =>
      Promise.all(
        partitions.map(async (partition) => {
          const { clock, signal } = self;
          const source = { log, clock, meta, epoch, timeoutMs: PARTITION_MS, signal };
          try {
            known.set(partition, await readPartitionFacts(source, partition));
          } catch (error) {
            problems.set(partition, errorText(error));
            isDenied ||= hasLogCode(error, 'NOT_AUTHORIZED');
          }
        }),
      ),
    );
  const { names: living, skewMs } = await finding;
  const rows = partitions.map((partition) =>
    describeOwner(partition, known.get(partition) ?? problems.get(partition) ?? 'there is no epoch yet', {
      meta: facts,
      living,
      committed,
    }),
  );
  return { meta: facts, living, skewMs, rows, facts: known, isDenied };
}

/** 0: said whose each is. 1: a partition could not be read. */
export async function runOwners(json: boolean, settings: Settings, self: OperatorProcess): Promise<number> {
  return await withLog(settings, self, async (log) => {
    const { meta, rows } = await readOwnership(log, settings, self);
    const epoch = meta.inForce?.token ?? null;
    if (json) self.out(renderJson({ epoch, owners: rows }));
    else if (epoch === null)
      self.out('There is no epoch yet: no worker and no gateway was ever started on this log.\n');
    else self.out(renderOwners(rows, self.clock.wallMs()));
    const unread = epoch === null ? [] : rows.filter(({ error }) => error !== null);
    if (unread.length === 0) return 0;
    const names = unread.map(({ partition }) => partition).join(', ');
    self.err(`throughline: ${unread.length} partitions could not be read (${names}): ${unread[0]?.error ?? ''}\n`);
    return 1;
  });
}

export function renderOwners(rows: readonly OwnerRow[], nowMs: number): string {
  const header = ['PARTITION', 'STATE', 'WORKER', 'SINCE', 'CLAIM', 'LAG', 'OPEN', 'OLDEST OPEN', 'CHECKPOINT'];
  const show = (value: number | string | null): string => (value === null ? '-' : String(value));
  const table = renderTable(
    header,
    rows.map((row) => [
      String(row.partition),
      row.state,
      show(row.worker),
      row.sinceMs === null ? '-' : formatTime(row.sinceMs),
      show(row.claim),
      show(row.lag),
      show(row.open),
      row.oldestOpenMs === null ? '-' : formatAge(nowMs - row.oldestOpenMs),
      row.checkpoint === null ? '-' : `${row.checkpoint.offset}, ${formatAge(nowMs - row.checkpoint.atMs)} ago`,
    ]),
  );
  const notes = rows.flatMap((row) => [
    ...(row.error === null ? [] : [`partition ${row.partition}: ${row.error}\n`]),
    ...(row.rivals.length === 0 ? [] : [`partition ${row.partition}: also claimed by ${row.rivals.join(', ')}\n`]),
  ]);
  return table + notes.join('');
}
