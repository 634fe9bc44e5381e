/** What `meta` says: every epoch that was proposed, the signs of life of workers, high-water marks. A fold, and the read for it. */
import { foldEpoch } from '@throughline/history';
import { META, readRange } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import { decodeText, META_PREFIX, readEpochRecord, readWorkerRecord } from '@throughline/protocol';
import type { Epoch, LogRecord, Offset, WorkerRecord } from '@throughline/protocol';

export interface EpochEntry {
  readonly token: Epoch;
  readonly previous: Epoch | null;
  readonly reason: string;
  readonly clusterId: string;
  readonly offset: Offset;
  /** When the log took it. */
  readonly atMs: number;
  /** `void`: another one was in force at its place. `foreign`: of another cluster, from which this log was copied. */
  readonly verdict: 'in-force' | 'former' | 'void' | 'foreign';
}

export interface WorkerSign {
  readonly record: WorkerRecord;
  readonly offset: Offset;
  readonly atMs: number;
}

export interface MetaFacts {
  /** In log order. */
  readonly epochs: readonly EpochEntry[];
  readonly inForce: EpochEntry | null;
  /** By name: those that have not signed off. */
  readonly workers: ReadonlyMap<string, WorkerSign>;
  /** `<epoch>/<topic>/<partition>` → position. */
  readonly marks: ReadonlyMap<string, string>;
  /** Time of the newest record. */
  readonly newestMs: number;
  /** Where reading ended. */
  readonly end: Offset;
}

export const NO_META: MetaFacts = {
  epochs: [],
  inForce: null,
  workers: new Map(),
  marks: new Map(),
  newestMs: 0,
  end: 0,
};

/** Folds the next record in log order. */
function foldMeta(facts: MetaFacts, record: LogRecord, clusterId: string): MetaFacts {
  const key = record.key === null ? '' : decodeText(record.key);
  const next = { ...facts, newestMs: Math.max(facts.newestMs, record.timestampMs), end: record.offset + 1 };
  if (key.startsWith(META_PREFIX.epoch)) {
    const candidate = readEpochRecord(record);
    if (candidate === null) return next;
    const before = facts.inForce;
    const isInForce = foldEpoch(before?.token ?? null, candidate, clusterId) === candidate.token;
    const verdict = isInForce ? 'in-force' : candidate.clusterId === clusterId ? 'void' : 'foreign';
    const entry: EpochEntry = { ...candidate, offset: record.offset, atMs: record.timestampMs, verdict };
    if (!isInForce) return { ...next, epochs: [...facts.epochs, entry] };
    const epochs = facts.epochs.map((each) => (each === before ? { ...each, verdict: 'former' as const } : each));
    return { ...next, epochs: [...epochs, entry], inForce: entry };
  }
  if (key.startsWith(META_PREFIX.worker)) {
    const sign = readWorkerRecord(record);
    const workers = new Map(facts.workers);
    if (sign === null) workers.delete(key.slice(META_PREFIX.worker.length));
    else workers.set(sign.worker, { record: sign, offset: record.offset, atMs: record.timestampMs });
    return { ...next, workers };
  }
  if (key.startsWith(META_PREFIX.mark) && record.value !== null)
    return {
      ...next,
      marks: new Map([...facts.marks, [key.slice(META_PREFIX.mark.length), decodeText(record.value)]]),
    };
  return next;
}

/** Reads all of `meta`. Errors: those of `Log.read`. */
export async function readMetaFacts(log: Log, signal: AbortSignal): Promise<MetaFacts> {
  const { start, end } = await log.bounds(META);
  let facts = NO_META;
  for await (const record of readRange({ log, of: META, from: start, below: end, signal }))
    facts = foldMeta(facts, record, log.description.clusterId);
  return { ...facts, end };
}

export interface LivingWorkers {
  readonly names: ReadonlySet<string>;
  /** This machine's clock before (below 0) or after the log's, in milliseconds, delivery included; null: no sign came to measure it by. */
  readonly skewMs: number | null;
}

/**
 * The workers that live. Times in the log are compared with one another only, since this machine's clock may be wrong:
 * whose last sign lies more than `withinMs` before the newest record is gone; the others are waited for, as their next
 * sign comes within `withinMs` if they live.
 */
export async function findLiving(
  log: Log,
  clock: Clock,
  facts: MetaFacts,
  withinMs: number,
  signal: AbortSignal,
): Promise<LivingWorkers> {
  const awaited = new Set(
    [...facts.workers].filter(([, { atMs }]) => facts.newestMs - atMs <= withinMs).map(([name]) => name),
  );
  const living = new Set<string>();
  const untilMs = clock.monoMs() + withinMs;
  let position = facts.end;
  let skewMs: number | null = null;
  while (awaited.size > 0 && !signal.aborted) {
    const leftMs = untilMs - clock.monoMs();
    if (leftMs <= 0) break;
    const batch = await log.read(META, position, { waitMs: leftMs, signal });
    position = batch.next;
    for (const record of batch.records) {
      const key = record.key === null ? '' : decodeText(record.key);
      if (!key.startsWith(META_PREFIX.worker)) continue;
      const seenMs = clock.wallMs() - record.timestampMs;
      skewMs = Math.min(skewMs ?? seenMs, seenMs);
      const name = key.slice(META_PREFIX.worker.length);
      awaited.delete(name);
      if (record.value === null) living.delete(name);
      else living.add(name);
    }
  }
  return { names: living, skewMs };
}
