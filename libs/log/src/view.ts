/**
 * A compacted view: the newest record of every key of one partition, followed as the log grows. Built on `read` alone,
 * so it is the same on every driver. What was applied and is no longer what the log holds is not mixed with what came
 * after it: the view begins anew. SPEC: LOG-VIEW, LOG-VIEW-SYNC, LOG-VIEW-DOUBT, LOG-VIEW-LOST.
 */
import type { LogRecord, Offset } from '@throughline/protocol';
import { decodeText } from '@throughline/protocol';
import { abortable, sleep } from './clock.ts';
import type { Clock } from './clock.ts';
import { anchorOf, checkContinuity } from './continuity.ts';
import type { Anchor } from './continuity.ts';
import { hasLogCode, LogError } from './errors.ts';
import type { Log, PartitionRef } from './port.ts';

/**
 * `doubt`: the log ends before what was applied, or holds another record there; the view is not complete until that is clear. `holds`: it is clear, and
 * nothing was lost. `lost`: the log was made anew, or lost its end; the view begins anew. `again`: it begins anew because
 * it was told to. `rebuilt`: after either, all that the log held is applied.
 */
export type ViewFinding = 'doubt' | 'holds' | 'lost' | 'again' | 'rebuilt';

export interface ViewOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly of: PartitionRef;
  /** Called for each record in log order, tombstones (`value === null`) included; after `lost` and `again` from the start. Must not throw. */
  apply(key: string, record: LogRecord): void;
  /**
   * Called once a change. Must not throw.
   * @param readMs when the newest read began of which nothing is in doubt, on the monotonic clock; of a topic that a read
   *   says was made anew, ten seconds before that.
   */
  onFinding(finding: ViewFinding, readMs: number): void;
  /** Called when a read fails and is tried again. */
  onError?(error: unknown): void;
  /** Called when a read was answered. */
  onAnswer?(): void;
  readonly pollMs?: number;
}

export interface View {
  /** Next offset to be read: everything before it was applied. */
  position(): Offset;
  /**
   * Resolves when everything below the end acknowledged at the time of the call was applied, and the log is proved to
   * hold what was applied if there was reason to doubt it. Errors: `ABORTED`, `CLOSED` (the view or its log), `LOG_UNAVAILABLE`.
   */
  sync(signal?: AbortSignal): Promise<void>;
  /** Something speaks for another log than was applied: that is looked into before more is applied, or counts as synchronized. */
  doubt(): void;
  /** Something shows that the log holds what was not applied: the view begins anew, and is not synchronized until all is applied. */
  reread(): void;
  close(): Promise<void>;
}

interface Waiter {
  until: Offset;
  readonly wake: () => void;
}

const RETRY_MS = 250;
/** A process that slept this long beyond its wait does not know what became of the log meanwhile. */
const SLEPT_MS = 5000;
/** That a topic was made anew is seen so long after it was at the latest, by a process that does not stand still. */
const SEEN_ANEW_MS = 10_000;

/** Starts to follow. The first {@link View.sync} makes it complete. */
export function openView(options: ViewOptions): View {
  const { log, clock, of } = options;
  const waitMs = options.pollMs ?? 1000;
  const closing = new AbortController();
  const { signal } = closing;
  const waiters = new Set<Waiter>();
  let position: Offset = 0;
  let anchor: Anchor | null = null;
  let source: string | undefined;
  let madeAnew: number | undefined;
  let readMs = clock.monoMs();
  // After whatever may have happened behind its back, the view looks before it goes on.
  let isUnsure = false;
  let isInDoubt = false;
  let isToReread = false;
  let isAnew = false;
  let dueMs = Number.POSITIVE_INFINITY;
  let rebuildUntil: Offset | null = null;
  let hasEnded = false;

  const hasApplied = (until: Offset): boolean => !isUnsure && position >= until;
  const wakeWaiters = (): void => {
    for (const waiter of waiters) {
      if (hasEnded || hasApplied(waiter.until)) {
        waiters.delete(waiter);
        waiter.wake();
      }
    }
  };
  const beginAnew = (why: 'lost' | 'again', end: Offset, sinceMs = readMs): void => {
    options.onFinding(why, sinceMs);
    isToReread = isAnew = false;
    position = 0;
    anchor = null;
    rebuildUntil = end;
  };
  /** `true` when what was applied is what the log holds, or the view has begun anew. */
  const makeSure = async (): Promise<boolean> => {
    const checking = checkContinuity(log, of, { position, anchor }, { mayProbe: isInDoubt, signal });
    const continuity = await abortable(checking, signal);
    if (continuity.found === 'doubt') {
      if (!isInDoubt) options.onFinding('doubt', readMs);
      isInDoubt = true;
      return false;
    }
    if (continuity.found === 'lost') {
      beginAnew('lost', continuity.end);
      // What they waited for is gone; what is there instead is what can be waited for.
      for (const waiter of waiters) waiter.until = Math.min(waiter.until, continuity.end);
    } else if (isAnew || isToReread) {
      const { end } = await abortable(log.bounds(of), signal);
      if (isAnew) beginAnew('lost', end, readMs - SEEN_ANEW_MS);
      else beginAnew('again', end);
    } else if (isInDoubt) options.onFinding('holds', readMs);
    isInDoubt = false;
    isUnsure = false;
    dueMs = Number.POSITIVE_INFINITY;
    wakeWaiters();
    return true;
  };
  const noteSleep = (): void => {
    if (clock.monoMs() > dueMs) isUnsure = true;
  };
  const follow = async (): Promise<void> => {
    const startedMs = clock.monoMs();
    dueMs = startedMs + waitMs + SLEPT_MS;
    const batch = await log.read(of, position, { waitMs, signal });
    options.onAnswer?.();
    noteSleep();
    // What failed or moved was tried again within the read: it is no less a reason to look.
    if (anchor !== null && batch.source !== source) isUnsure = true;
    source = batch.source;
    if (anchor !== null && (batch.madeAnew ?? 0) > (madeAnew ?? 0)) isUnsure = isAnew = true;
    madeAnew = batch.madeAnew;
    // Doubted meanwhile: whatever was read may belong to another history.
    if (isUnsure) return;
    for (const record of batch.records) if (record.key !== null) options.apply(decodeText(record.key), record);
    const last = batch.records.at(-1);
    if (last !== undefined) anchor = anchorOf(last);
    position = batch.next;
    readMs = startedMs;
    if (rebuildUntil !== null && position >= rebuildUntil) {
      rebuildUntil = null;
      options.onFinding('rebuilt', readMs);
    }
    wakeWaiters();
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        noteSleep();
        if (!isUnsure || (await makeSure())) await follow();
        else await sleep(clock, RETRY_MS, signal);
      } catch (error) {
        // A log that was closed does not come back: waiters learn it, nothing is tried again.
        if (signal.aborted || hasLogCode(error, 'CLOSED')) break;
        if (hasLogCode(error, 'OFFSET_OUT_OF_RANGE') && position < (error.details.start ?? 0)) {
          position = error.details.start ?? 0;
          continue;
        }
        isUnsure = true;
        options.onError?.(error);
        await sleep(clock, RETRY_MS, signal);
      }
    }
    hasEnded = true;
    wakeWaiters();
  };
  const finished = run();
  return {
    position: () => position,
    async sync(aborted) {
      const before = position;
      const { end } = await abortable(log.bounds(of), aborted);
      // What was applied cannot lie beyond the end of the log that it came from.
      if (before > end) isUnsure = true;
      if (hasApplied(end)) return;
      await new Promise<void>((resolve, reject) => {
        const onAbort = (): void => {
          waiters.delete(waiter);
          reject(new LogError('ABORTED', 'the wait for the view was aborted'));
        };
        const waiter: Waiter = {
          until: end,
          wake: () => {
            aborted?.removeEventListener('abort', onAbort);
            if (hasApplied(waiter.until)) resolve();
            else reject(new LogError('CLOSED', 'the view was closed'));
          },
        };
        waiters.add(waiter);
        if (aborted?.aborted) onAbort();
        else aborted?.addEventListener('abort', onAbort, { once: true });
        wakeWaiters();
      });
    },
    doubt() {
      isUnsure = true;
    },
    reread() {
      isUnsure = true;
      isToReread = true;
    },
    async close() {
      closing.abort();
      await finished;
    },
  };
}
