/** A memory log under virtual time, with one partition, for the tests of this package. */
import { createMemoryLog } from '@throughline/log/memory';
import type { MemoryLog } from '@throughline/log/memory';
import type { Clock, Log } from '@throughline/log';
import type { CheckpointHint, Offset, RecordInput } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { CatchUpPool } from '../catch-up-pool.ts';
import { PartitionTail } from '../partition-tail.ts';
import type { CursorResult, PartitionTailOptions } from '../partition-tail.ts';

export const EPOCH = 'epochaaaaa';
export const EVENTS = { topic: 'events', partition: 0 } as const;
/** Never fires. */
export const OPEN = new AbortController().signal;

export interface Rig {
  readonly time: VirtualTime;
  readonly clock: Clock;
  readonly log: MemoryLog;
  append(...inputs: readonly RecordInput[]): Promise<readonly Offset[]>;
  tail(options?: Partial<PartitionTailOptions>): PartitionTail;
  /** Offsets of the events that a cursor's result holds; its kind if there are none. */
  finish<T>(work: Promise<T>): Promise<T>;
}

export function createRig(seed = 1, retentionMs = 24 * 3600_000): Rig {
  const time = createVirtualTime({ seed });
  const clock = time.clock();
  const log = createMemoryLog({ clock, partitions: 1, clusterId: 'rig', retentionMs });
  return {
    time,
    clock,
    log,
    async append(...inputs) {
      const { offsets } = await log.append(EVENTS, inputs);
      return offsets;
    },
    tail: (options = {}) =>
      new PartitionTail({
        log,
        clock,
        partition: 0,
        epoch: EPOCH,
        cacheBytes: 1024 * 1024,
        pool: new CatchUpPool(4),
        hint: () => null,
        ...options,
      }),
    finish: (work) => time.run(work),
  };
}

export function offsetsOf(result: CursorResult): readonly Offset[] | string {
  return result.kind === 'events' ? result.events.map(({ event }) => event.offset) : result.kind;
}

export function hintAt(offset: Offset, claims: readonly Offset[], worker = 'w'): CheckpointHint {
  return { offset, claims, worker };
}

export interface ReadCall {
  readonly position: Offset;
  readonly waitMs: number;
}

/** The log with every `read` noted and, if given, changed before it is made. */
export function spyReads(log: Log, calls: ReadCall[], before?: (call: ReadCall) => Promise<void> | void): Log {
  return {
    ...log,
    async read(from, position, options = {}) {
      const call = { position, waitMs: options.waitMs ?? 0 };
      if (from.topic === 'events') {
        calls.push(call);
        await before?.(call);
      }
      return log.read(from, position, options);
    },
  };
}
