/** What the two threads say to each other. Batches both ways: one message carries what gathered since the last. */
import type { Offset, Partition } from '@throughline/protocol';
import type { LogErrorCode, LogErrorDetails } from '../errors.ts';

export interface WorkerSettings {
  readonly file: string;
  /** Of a new file. */
  readonly partitions: number;
  readonly maxBytes: number | null;
  readonly retentionMs: number;
  readonly leaseMs: number;
  readonly compactionGraceMs: number;
  /** How long an append may wait for other processes' writes. */
  readonly busyMs: number;
  /** One 32-bit word at {@link SENT}: a count of messages sent. The worker sleeps on it. */
  readonly signals: SharedArrayBuffer;
}

export const SENT = 0;

/** An error on its way between threads. */
export interface Fault {
  readonly code: LogErrorCode;
  readonly message: string;
  readonly details: LogErrorDetails;
}

export type InjectedFault = 'disk-full' | 'unknown-stored' | 'unknown-lost';

export type Call =
  /** Reads; if there is nothing and `watch`, the slot is watched from `next` on until a push. */
  | {
      readonly kind: 'fetch';
      readonly id: number;
      readonly slot: number;
      readonly position: Offset;
      readonly maxBytes: number;
      readonly watch: boolean;
    }
  | { readonly kind: 'bounds'; readonly id: number; readonly slot: number }
  | {
      readonly kind: 'renew';
      readonly id: number;
      readonly group: string;
      readonly member: string;
      readonly wallMs: number;
      readonly monoMs: number;
    }
  /** Two numbers a partition: partition, offset. */
  | { readonly kind: 'commit'; readonly id: number; readonly group: string; readonly offsets: readonly number[] }
  | { readonly kind: 'committed'; readonly id: number; readonly group: string }
  | { readonly kind: 'leave'; readonly id: number; readonly group: string; readonly member: string }
  /** Retention and compaction; `force`: now, whoever swept last, and superseded records without grace. */
  | {
      readonly kind: 'sweep';
      readonly id: number;
      readonly wallMs: number;
      readonly everyMs: number;
      readonly force: boolean;
    }
  | { readonly kind: 'evict'; readonly id: number; readonly slot: number; readonly before: Offset }
  | { readonly kind: 'inject'; readonly id: number; readonly fault: InjectedFault | null }
  | { readonly kind: 'close'; readonly id: number };

export interface ToWorker {
  /** Five numbers an append: id, slot, where it starts in `bytes`, records, bytes. */
  readonly appends: readonly number[];
  readonly bytes: Uint8Array | null;
  readonly wallMs: number;
  readonly calls: readonly Call[];
}

interface Rows {
  readonly slot: number;
  /** As of `writeRows`. */
  readonly bytes: Uint8Array | null;
  readonly count: number;
  readonly next: Offset;
  readonly start: Offset;
  readonly end: Offset;
}

/** In the order in which they happened. */
export type WorkerEvent =
  | { readonly kind: 'opened'; readonly clusterId: string; readonly partitions: number }
  | { readonly kind: 'failed'; readonly ids: readonly number[]; readonly fault: Fault }
  | ({ readonly kind: 'batch'; readonly id: number; readonly isWatched: boolean } & Rows)
  /** Ends the watch. */
  | ({ readonly kind: 'push'; readonly position: Offset } & Rows)
  | {
      readonly kind: 'bounds';
      readonly id: number;
      readonly slot: number;
      readonly start: Offset;
      readonly end: Offset;
    }
  | { readonly kind: 'started'; readonly slot: number; readonly start: Offset }
  | {
      readonly kind: 'assigned';
      readonly group: string;
      readonly member: string;
      readonly assigned: readonly Partition[];
    }
  | { readonly kind: 'committed'; readonly id: number; readonly offsets: readonly (readonly [Partition, Offset])[] }
  | { readonly kind: 'done'; readonly id: number };

export interface FromWorker {
  /** Three numbers an append: id, first offset, timestamp. They happened before `events`. */
  readonly acks: readonly number[];
  readonly events: readonly WorkerEvent[];
}
