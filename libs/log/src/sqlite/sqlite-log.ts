/** The embedded log as callers see it. The database is in a worker thread; the newest records are on this side too. */
import type { Offset } from '@throughline/protocol';
import { checkAppend, checkPosition, checkRef } from '../check-append.ts';
import { abortable } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import type { Log, LogDescription, PartitionRef, ReadBatch, ReadOptions } from '../port.ts';
import { DEFAULT_MAX_RECORD_BYTES, DEFAULT_READ_BYTES } from '../record-size.ts';
import { systemClock } from '../system.ts';
import { watchIdentity } from './file-identity.ts';
import { createMemberships } from './memberships.ts';
import type { InjectedFault, WorkerEvent } from './messages.ts';
import { MAX_HEADER_NAME_BYTES, readAppended, readRows } from './record-codec.ts';
import { SlotFeed } from './slot-feed.ts';
import { MAX_PARTITIONS, slotCount, slotOf } from './slots.ts';
import { startWorkerLink } from './worker-link.ts';
import type { WorkerLink } from './worker-link.ts';
import { itemAt } from '../item-at.ts';

export interface SqliteLogOptions {
  /** Made (mode 0600) if it does not exist; its directory must. `-wal` and `-shm` files lie beside it. */
  readonly file: string;
  /** Partitions of a new file, 1 to 256; an existing file keeps its own. Default 4. */
  readonly partitions?: number;
  /** Milliseconds for which records are held. Of several processes the shortest counts. Default 24 h. */
  readonly retentionMs?: number;
  /** Size cap of the file in bytes; at the cap appends are refused with `size-cap` and reading goes on. Default: none. */
  readonly maxBytes?: number;
  /** Milliseconds a group member stays without renewal. Default 3000. */
  readonly leaseMs?: number;
  /** Milliseconds a superseded record of a compacted topic is still held. Default 60,000. */
  readonly compactionGraceMs?: number;
  /** Milliseconds an append waits for writes of other processes before it is refused. Default 10,000. */
  readonly busyMs?: number;
  /** Bytes of appends of this process that may wait for their acks; more are refused. Default 128 MiB. */
  readonly maxQueuedBytes?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/** For tests and drills: what time, an operator or a fault would do to the log. */
export interface SqliteControls {
  evictBefore(ref: PartitionRef, offset: Offset): Promise<void>;
  /** Retention and compaction now; superseded records go without grace. */
  sweep(): Promise<void>;
  /** How appends of this process end from now on; `null`: as they should. */
  inject(fault: InjectedFault | null): Promise<void>;
  /** Ends the worker as a kill of the process would: nothing is left or drained. */
  crash(): Promise<void>;
}

/** Bytes of newest records held for readers at the tail, over all partitions. */
const FEED_BYTES = 8 * 1024 * 1024;
const FEED_SLOT_BYTES = { least: 32 * 1024, most: 512 * 1024 } as const;
const SWEEP_MS = { least: 250, most: 60_000 } as const;

/**
 * Opens an embedded log; several processes on one host may have the same file open.
 * Errors: `LOG_INCOMPATIBLE` (a newer format, or no log), `LOG_UNAVAILABLE` (no directory, no access); messages name the fix.
 */
export async function openSqliteLog(options: SqliteLogOptions): Promise<Log> {
  return (await openSqliteLogWithControls(options)).log;
}

export async function openSqliteLogWithControls(
  options: SqliteLogOptions,
): Promise<{ log: Log; controls: SqliteControls }> {
  const clock = options.clock ?? systemClock;
  const retentionMs = options.retentionMs ?? 24 * 3600_000;
  const leaseMs = options.leaseMs ?? 3000;
  const wanted = options.partitions ?? 4;
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > MAX_PARTITIONS)
    throw new RangeError(`partitions must be 1 to ${MAX_PARTITIONS}`);

  let feeds: SlotFeed[] = [];
  const touched = new Set<SlotFeed>();
  const memberships = createMemberships(() => link, clock, leaseMs);
  let isClosed = false;
  let closing: Promise<void> | null = null;
  let brokenBy: LogError | null = null;
  let isFileGone = false;

  const breakOff = (error: LogError): void => {
    brokenBy = error;
    for (const feed of feeds) {
      feed.isWatched = false;
      feed.wake();
    }
  };

  const onEvent = (event: WorkerEvent): void => {
    switch (event.kind) {
      case 'push': {
        const feed = itemAt(feeds, event.slot);
        feed.isWatched = false;
        if (feed.end !== event.position) feed.reset(event.position);
        if (event.bytes !== null) feed.extend(readRows(event.bytes, event.count), event.next);
        wake(feed);
        return;
      }
      case 'batch': {
        if (!event.isWatched) return;
        const feed = itemAt(feeds, event.slot);
        if (feed.end !== event.next) feed.reset(event.next);
        feed.isWatched = true;
        wake(feed);
        return;
      }
      case 'started': {
        const feed = itemAt(feeds, event.slot);
        feed.trimBefore(event.start);
        wake(feed);
        return;
      }
      case 'assigned':
        memberships.onAssigned(event.group, event.member, event.assigned);
        return;
      case 'opened':
      case 'failed':
      case 'bounds':
      case 'committed':
      case 'done':
        return;
    }
  };

  const started = await startWorkerLink(
    {
      file: options.file,
      partitions: wanted,
      maxBytes: options.maxBytes ?? null,
      retentionMs,
      leaseMs,
      compactionGraceMs: options.compactionGraceMs ?? 60_000,
      busyMs: options.busyMs ?? 10_000,
    },
    { clock, maxQueuedBytes: options.maxQueuedBytes ?? 128 * 1024 * 1024 },
    {
      wantsBytes: (slot) => itemAt(feeds, slot).isWatched,
      onAppended(slot, first, timestampMs, count, sent) {
        const feed = itemAt(feeds, slot);
        // Elsewhere than at our end: others appended before, and the worker pushes all of it.
        if (!feed.isWatched || feed.end !== first) return;
        if (sent === null) feed.reset(first + count);
        else feed.extend(readAppended(sent.buffer, sent.at, count, first, timestampMs), first + count);
        touched.add(feed);
      },
      onAppends() {
        for (const feed of touched) wake(feed);
        touched.clear();
      },
      onEvent,
      onBroken(error) {
        breakOff(error);
      },
    },
  );
  const link: WorkerLink = started.link;
  const { clusterId, partitions } = started;
  const description: LogDescription = {
    clusterId,
    driver: 'sqlite',
    partitions,
    maxRecordBytes: DEFAULT_MAX_RECORD_BYTES,
    retentionMs,
  };
  const slots = slotCount(partitions);
  const slotBytes = Math.min(FEED_SLOT_BYTES.most, Math.max(FEED_SLOT_BYTES.least, Math.floor(FEED_BYTES / slots)));
  feeds = Array.from({ length: slots }, () => new SlotFeed(slotBytes));

  const checkOpen = (): void => {
    if (isClosed) throw closedError();
  };
  const slotFor = (ref: PartitionRef): number => {
    checkRef(ref, partitions);
    return slotOf(ref, partitions);
  };

  /** Resolves `true` at the next change of the feed, `false` after `ms`. */
  const waitForChange = (feed: SlotFeed, ms: number, signal: AbortSignal | undefined): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        unwatch();
        cancel();
        signal?.removeEventListener('abort', onAbort);
        act();
      };
      const onAbort = (): void => {
        settle(() => {
          reject(abortedError());
        });
      };
      const unwatch = feed.onChange(() => {
        settle(() => {
          resolve(true);
        });
      });
      const cancel = clock.setTimer(ms, () => {
        settle(() => {
          resolve(false);
        });
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });

  const fetchRecords = async (
    slot: number,
    position: Offset,
    maxBytes: number,
    watch: boolean,
    signal: AbortSignal | undefined,
  ): Promise<ReadBatch> => {
    const event = await abortable(link.call({ kind: 'fetch', slot, position, maxBytes, watch }), signal);
    if (event.kind !== 'batch') throw new TypeError(`a fetch was answered by ${event.kind}`);
    return {
      records: event.bytes === null ? [] : readRows(event.bytes, event.count),
      next: event.next,
      bounds: { start: event.start, end: event.end },
    };
  };

  const read = async (from: PartitionRef, position: Offset, options: ReadOptions): Promise<ReadBatch> => {
    const { maxBytes = DEFAULT_READ_BYTES, waitMs = 0, signal } = options;
    const slot = slotFor(from);
    checkPosition(position);
    const feed = itemAt(feeds, slot);
    const untilMs = waitMs > 0 ? clock.monoMs() + waitMs : 0;
    let leftMs = waitMs;
    let at = position;
    for (;;) {
      checkOpen();
      if (signal?.aborted) throw abortedError();
      if (brokenBy !== null) throw brokenBy;
      if (feed.covers(at)) {
        const { records, next } = feed.take(at, maxBytes);
        return { records, next, bounds: { start: feed.logStart, end: feed.end } };
      }
      if (leftMs > 0 && feed.isWatched && at === feed.end) {
        const hasChanged = await waitForChange(feed, leftMs, signal);
        leftMs = hasChanged ? Math.max(0, untilMs - clock.monoMs()) : 0;
        // A last look at the file when the time is over: it may hold what no push has told yet.
        continue;
      }
      const batch = await closable(fetchRecords(slot, at, maxBytes, leftMs > 0, signal));
      if (batch.records.length > 0 || leftMs <= 0) return batch;
      at = batch.next;
      leftMs = Math.max(0, untilMs - clock.monoMs());
    }
  };

  /** The link fails what is pending when it ends; if we ended it, the word for that is `CLOSED`. */
  const closable = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      checkOpen();
      throw error;
    }
  };

  const sweepMs = Math.min(SWEEP_MS.most, Math.max(SWEEP_MS.least, retentionMs / 20));
  let cancelSweep = (): void => undefined;
  const scheduleSweep = (ms: number): void => {
    cancelSweep = clock.setTimer(ms, () => {
      if (isClosed) return;
      const next = (): void => {
        if (!isClosed) scheduleSweep(sweepMs);
      };
      // A sweep that fails (a full disk, a busy file) is tried again next time.
      link.call({ kind: 'sweep', wallMs: clock.wallMs(), everyMs: sweepMs * 0.8, force: false }).then(next, next);
    });
  };
  scheduleSweep(Math.min(sweepMs, 1000));

  const stopWatching = watchIdentity(options.file, clock, () => {
    isFileGone = true;
    breakOff(new LogError('LOG_UNAVAILABLE', GONE));
  });

  const end = (how: () => Promise<void>): Promise<void> => {
    closing ??= (async () => {
      isClosed = true;
      cancelSweep();
      stopWatching();
      memberships.stop();
      for (const feed of feeds) feed.wake();
      await how();
    })();
    return closing;
  };

  const log: Log = {
    description,
    describe: () =>
      new Promise((resolve) => {
        checkOpen();
        resolve(description);
      }),
    // The partitions of a file are made with it.
    onGrown: () => () => undefined,
    async append(to, records) {
      checkOpen();
      if (isFileGone) throw new LogError('APPEND_REFUSED', GONE, { reason: 'other' });
      const slot = slotFor(to);
      checkAppend(to, records, description);
      for (const record of records)
        for (const [name] of record.headers)
          if (Buffer.byteLength(name) > MAX_HEADER_NAME_BYTES)
            throw new LogError('APPEND_REFUSED', 'a header name is too long', { reason: 'too-large' });
      return link.append(slot, records);
    },
    read: (from, position, options = {}) => read(from, position, options),
    async bounds(of) {
      checkOpen();
      if (brokenBy !== null) throw brokenBy;
      const event = await closable(link.call({ kind: 'bounds', slot: slotFor(of) }));
      if (event.kind !== 'bounds') throw new TypeError(`a call for bounds was answered by ${event.kind}`);
      return { start: event.start, end: event.end };
    },
    async join(options) {
      checkOpen();
      return closable(memberships.join(options));
    },
    async committed(group) {
      checkOpen();
      if (brokenBy !== null) throw brokenBy;
      const event = await closable(link.call({ kind: 'committed', group }));
      if (event.kind !== 'committed') throw new TypeError(`a call for committed offsets was answered by ${event.kind}`);
      return new Map(event.offsets);
    },
    close: () => end(() => link.close()),
  };
  return {
    log,
    controls: {
      async evictBefore(ref, before) {
        await link.call({ kind: 'evict', slot: slotFor(ref), before });
      },
      async sweep() {
        await link.call({ kind: 'sweep', wallMs: clock.wallMs(), everyMs: 0, force: true });
      },
      async inject(fault) {
        await link.call({ kind: 'inject', fault });
      },
      crash: () => end(() => link.terminate()),
    },
  };
}

const GONE =
  'the log file was removed or replaced while it was open: stop this process, put the file back, and start again';

function wake(feed: SlotFeed): void {
  feed.wake();
  feed.trim();
}

function abortedError(): LogError {
  return new LogError('ABORTED', 'the read was aborted');
}

function closedError(): LogError {
  return new LogError('CLOSED', 'the log is closed');
}
