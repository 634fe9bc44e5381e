/** What a run leaves behind: plain data that the checker judges, and that tests of the checker doctor. */
import type { LogRecord, Partition } from '@throughline/protocol';

/** One SSE event with an id, as a client received it. */
export interface Receipt {
  readonly atMs: number;
  readonly id: string;
  readonly data: string;
}

/**
 * What is wrong with a cursor that no server gave, or with the session id beside it.
 * - `cut`: its end is missing. `foreign`: it is of another session. `stream`, `partition`, `epoch`, `offset`: that field
 *   is another. `digit`: the checksum of its anchor is another. `session`: the session id has another signature.
 */
export type Forgery = 'cut' | 'foreign' | 'stream' | 'partition' | 'epoch' | 'offset' | 'digit' | 'session';

/** One HTTP exchange as its client saw it. */
export interface ExchangeRecord {
  readonly number: number;
  /** Session id; of `initialize` known with its answer. */
  session: string | null;
  readonly method: 'POST' | 'GET' | 'DELETE';
  gateway: string;
  readonly lastEventId: string | null;
  /** When it was sent, and when its head came; `null`: it never did. */
  readonly sentMs: number;
  headMs: number | null;
  /** What a POST said. */
  body: string;
  /** JSON-RPC ids of the requests in the body. */
  readonly asks: readonly (string | number)[];
  /** Whether the cursor was given by a server of this run for this session, so that it must be understood. */
  isHonest: boolean;
  /** What was forged, if anything was. */
  forgery?: Forgery;
  /** Reason or code of the refusal in the body of an answer that is no stream. */
  refusal?: string | null;
  /** Whether the exchange took place after all faults, to read everything again. */
  isReread: boolean;
  status: number | null;
  /** Offset of this connection's own attachment, once the border between replayed and live was told. */
  liveAt: number | null;
  /** When that was. */
  liveMs: number | null;
  readonly receipts: Receipt[];
  end: 'ended' | 'reset' | 'refused' | 'left' | 'silent' | null;
}

export type CallOutcome =
  | { readonly kind: 'result'; readonly json: string }
  | { readonly kind: 'error'; readonly code: string; readonly mayHaveRun: boolean | null; readonly json: string }
  /** The client knows by a 404 or an in-band end that its session is over. */
  | { readonly kind: 'session-lost' }
  /** The client itself gave up after an answer that says that nobody knows. */
  | { readonly kind: 'given-up'; readonly why: string }
  /** The client cancelled, and the stream ended without an answer. */
  | { readonly kind: 'cancelled' };

export interface CallRecord {
  readonly token: string;
  readonly tool: string;
  readonly session: string;
  readonly requestId: string | number;
  readonly startedMs: number;
  cancelled: boolean;
  endedMs: number | null;
  outcome: CallOutcome | null;
  /** Every answer that came on any stream of the call, in the order of coming. */
  readonly answers: string[];
}

export interface SessionRecordOfRun {
  readonly id: string;
  readonly server: string;
  readonly version: string;
  /** The client itself ended it. */
  deleted: boolean;
  /** The client sent a cursor for it that no server had given: it may end by that. */
  forged: boolean;
  /** How the client learned that it is over. */
  lost: string | null;
}

/** A message that a producer appended: it was acknowledged. */
export interface ProducedRecord {
  readonly session: string;
  readonly name: string;
}

/** A request on a session that is over, after all faults. */
export interface GoneCheck {
  readonly session: string;
  readonly gateway: string;
  readonly status: number | null;
}

export interface RunOfTool {
  readonly token: string;
  readonly tool: string;
  readonly session: string;
  readonly process: string;
  readonly atMs: number;
}

/** What lay at or above `at` was lost, and its offsets were given again. */
export interface HistoryBreak {
  readonly topic: 'inbound' | 'events' | 'sessions' | 'meta';
  readonly partition: Partition;
  readonly at: number;
  readonly atMs: number;
  /** Some of what was lost had been told in `meta`, so that any process can find it out. */
  readonly isTold: boolean;
  /** Every process that had read what was lost died before it can have noticed. Default: false. */
  readonly isForgotten?: boolean;
}

/** A fault that found something to strike. */
export interface StruckFault {
  readonly fault: string;
  readonly atMs: number;
}

export interface PartitionArchive {
  readonly partition: Partition;
  readonly events: readonly LogRecord[];
  /** The same as it was before each break, oldest first. */
  readonly formerEvents?: readonly (readonly LogRecord[])[];
  readonly inbound: readonly LogRecord[];
  /** The first offset of `inbound` that was held at the end. Default: 0. */
  readonly inboundHeldFrom?: number;
  readonly sessions: readonly LogRecord[];
  /** What retention took of `events`: all below `below`, when the log ended at `end`. Default: nothing. */
  readonly evictions?: readonly { readonly below: number; readonly end: number }[];
  /** Claims by when `meta` first told of them. Default: each was told at once. */
  readonly toldMs?: ReadonlyMap<number, number>;
}

export interface RunRecords {
  readonly seed: number;
  readonly epochs: readonly string[];
  /** When each of them came into force. */
  readonly epochsMs?: readonly number[];
  readonly breaks?: readonly HistoryBreak[];
  readonly sessions: readonly SessionRecordOfRun[];
  readonly exchanges: readonly ExchangeRecord[];
  readonly calls: readonly CallRecord[];
  readonly runs: readonly RunOfTool[];
  readonly gone: readonly GoneCheck[];
  /** Default: none. */
  readonly produced?: readonly ProducedRecord[];
  readonly partitions: readonly PartitionArchive[];
  /** Lowest offset of `events` that was still held at the end, by partition, if retention took anything. */
  readonly evictedBelow: readonly number[];
  /** Errors that a process logged as its own failure, and rejections nobody took. */
  readonly bugs: readonly string[];
  /** Faults of the run, by name. */
  readonly faults: readonly string[];
  /** What struck, in the order of time. */
  readonly struck: readonly StruckFault[];
  /** When the last fault was over. */
  readonly quietMs: number;
  readonly endMs: number;
}
