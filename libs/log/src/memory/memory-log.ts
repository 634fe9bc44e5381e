/** The reference driver: one process's view of a {@link MemoryStore}. Deterministic under the clock it is given. */
import type { Partition } from '@throughline/protocol';
import { checkAppend, checkCommit, checkPosition, checkRef } from '../check-append.ts';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import { PartitionCount } from '../partition-count.ts';
import type {
  Appended,
  JoinOptions,
  Log,
  LogDescription,
  Membership,
  PartitionRef,
  ReadBatch,
  ReadOptions,
} from '../port.ts';
import { DEFAULT_READ_BYTES } from '../record-size.ts';
import { createMemoryStore } from './store.ts';
import type { AppendFault, MemoryControls, MemoryStore, MemoryStoreOptions } from './store.ts';

export interface MemoryLog extends Log {
  readonly store: MemoryStore;
  /** Of the store: they act on every handle. */
  readonly controls: MemoryControls;
  /** As {@link MemoryControls.failAppends}, for appends through this handle only. */
  failAppends(mode: AppendFault | null): void;
  /** Stops as a killed process does: nothing is left or drained; its leases run out. Pending reads reject with `CLOSED`. */
  crash(): void;
}

export interface MemoryLogOptions {
  readonly clock: Clock;
  /** Milliseconds until this handle hears by itself of partitions that were added. Default 0. */
  readonly newsMs?: number;
}

/** A log with a store of its own. */
export function createMemoryLog(options: MemoryStoreOptions): MemoryLog {
  return openMemoryLog(createMemoryStore(options), { clock: options.clock });
}

/** One more handle on the store, as another process would have. Closing it leaves the others. */
export function openMemoryLog(store: MemoryStore, options: MemoryLogOptions): MemoryLog {
  const { clock, newsMs = 0 } = options;
  const count = new PartitionCount(store.count.known());
  const description: LogDescription = {
    ...store.description,
    get partitions() {
      return count.known();
    },
  };
  const stops = new Set<() => void>();
  const leaves = new Set<() => void>();
  let isClosed = false;
  let ownFault: AppendFault | null = null;

  const checkOpen = (): void => {
    if (isClosed) throw new LogError('CLOSED', 'the log is closed');
  };
  const stop = (): void => {
    isClosed = true;
    for (const each of [...stops]) each();
  };

  const append = (to: PartitionRef, records: readonly Parameters<Log['append']>[1][number][]): Appended => {
    checkOpen();
    checkRef(to, count.known());
    const partition = store.partition(to);
    const bytes = checkAppend(to, records, store.description);
    store.sweep(to);
    if (!store.hasRoom(bytes))
      throw new LogError('APPEND_REFUSED', 'the log has reached its size cap', { reason: 'size-cap' });
    const fault = ownFault ?? store.appendFault;
    if (fault === 'refused') throw new LogError('APPEND_REFUSED', 'the append was refused', { reason: 'other' });
    if (fault === 'unknown-lost') throw unknown();
    const appended = partition.append(records, store.clock.wallMs());
    if (fault === 'unknown-stored') throw unknown();
    return appended;
  };

  const read = (from: PartitionRef, position: number, options: ReadOptions): Promise<ReadBatch> => {
    checkOpen();
    checkPosition(position);
    const { signal, maxBytes = DEFAULT_READ_BYTES, waitMs = 0 } = options;
    if (signal?.aborted) throw aborted();
    checkRef(from, count.known());
    const partition = store.partition(from);
    store.sweep(from);
    const first = partition.read(position, maxBytes);
    if (first.records.length > 0 || waitMs <= 0) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        unwatch();
        cancel();
        signal?.removeEventListener('abort', onAbort);
        stops.delete(onClose);
        act();
      };
      const attempt = (isLast: boolean): void => {
        let batch: ReadBatch;
        try {
          batch = partition.read(first.next, maxBytes);
        } catch (error) {
          settle(() => {
            reject(error instanceof Error ? error : new Error(String(error)));
          });
          return;
        }
        if (isLast || batch.records.length > 0)
          settle(() => {
            resolve(batch);
          });
      };
      const onAbort = (): void => {
        settle(() => {
          reject(aborted());
        });
      };
      const onClose = (): void => {
        settle(() => {
          reject(new LogError('CLOSED', 'the log was closed'));
        });
      };
      const unwatch = partition.watch(() => {
        attempt(false);
      });
      const cancel = clock.setTimer(waitMs, () => {
        attempt(true);
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      stops.add(onClose);
    });
  };

  const join = ({ group: name, member, onChange }: JoinOptions): Membership => {
    checkOpen();
    const group = store.group(name);
    let assigned: readonly Partition[] = [];
    let hasLeft = false;
    let cancel = (): void => undefined;
    const learn = (now: readonly Partition[]): void => {
      if (hasLeft) return;
      // Whoever is given a partition knows that it is there.
      count.learn(Math.max(-1, ...now) + 1);
      assigned = now;
      onChange(now);
    };
    const renew = (): void => {
      group.renew(member, clock, learn);
      cancel = clock.setTimer(store.leaseMs / 3, renew);
    };
    const halt = (): void => {
      hasLeft = true;
      assigned = [];
      cancel();
      stops.delete(halt);
      leaves.delete(leave);
    };
    const leave = (): void => {
      if (hasLeft) return;
      halt();
      group.leave(member);
    };
    stops.add(halt);
    leaves.add(leave);
    renew();
    return {
      member,
      assigned: () => assigned,
      commit: (partition, offset) =>
        promised(() => {
          checkOpen();
          checkCommit(assigned, partition, offset);
          group.committed.set(partition, offset);
        }),
      leave() {
        leave();
        return Promise.resolve();
      },
    };
  };

  // By its own timer: a paused process hears nothing.
  let cancelNews = (): void => undefined;
  const stopNews = store.count.onGrown(() => {
    cancelNews();
    cancelNews = clock.setTimer(newsMs, () => {
      count.learn(store.count.known());
    });
  });
  stops.add(() => {
    stopNews();
    cancelNews();
  });

  return {
    store,
    controls: store.controls,
    description,
    describe: () =>
      promised(() => {
        checkOpen();
        count.learn(store.count.known());
        return description;
      }),
    onGrown: (listener) => count.onGrown(listener),
    append: (to, records) => promised(() => append(to, records)),
    read: (from, position, options = {}) => promised(() => read(from, position, options)),
    bounds: (of) =>
      promised(() => {
        checkOpen();
        checkRef(of, count.known());
        store.sweep(of);
        return store.partition(of).bounds();
      }),
    join: (options) => promised(() => join(options)),
    committed: (group) =>
      promised(() => {
        checkOpen();
        return new Map(store.group(group).committed);
      }),
    failAppends(mode) {
      ownFault = mode;
    },
    crash: stop,
    close() {
      for (const leave of [...leaves]) leave();
      stop();
      return Promise.resolve();
    },
  };
}

/** Runs at once; what it throws becomes a rejection. */
function promised<T>(run: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve) => {
    resolve(run());
  });
}

function unknown(): LogError {
  return new LogError('APPEND_UNKNOWN', 'the append may or may not be in the log');
}

function aborted(): LogError {
  return new LogError('ABORTED', 'the read was aborted');
}
