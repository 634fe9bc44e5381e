/** Values of the compacted topics `sessions` and `meta`: JSON for people, read tolerantly. */
import { classifyMessage } from './json-rpc.ts';
import type { JsonRpcRequest } from './json-rpc.ts';
import { decodeText } from './record.ts';
import type { LogRecord } from './record.ts';

function readObject(record: LogRecord): Record<string, unknown> | null {
  if (record.value === null) return null;
  try {
    const value: unknown = JSON.parse(decodeText(record.value));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;

/** Value of `sessions/<key>`: what another worker needs to rebuild the session. Written by the owner only. */
export interface SessionRecord {
  readonly server: string;
  /** The principal as records carry it. */
  readonly principal: string;
  /** The negotiated MCP revision. */
  readonly version: string;
  readonly createdMs: number;
  /** The client's `initialize` request. */
  readonly initialize: JsonRpcRequest;
  readonly initialized: boolean;
  readonly logLevel: string | null;
  readonly subscriptions: readonly string[];
}

export function readSessionRecord(record: LogRecord): SessionRecord | null {
  const value = readObject(record);
  if (value === null) return null;
  const initialize = classifyMessage(value['initialize']);
  if (!('kind' in initialize) || initialize.kind !== 'request') return null;
  const subscriptions = Array.isArray(value['subscriptions'])
    ? value['subscriptions'].filter((uri): uri is string => typeof uri === 'string')
    : [];
  return {
    server: text(value['server']),
    principal: text(value['principal']),
    version: text(value['version']),
    createdMs: count(value['createdMs']) ?? 0,
    initialize: initialize.message,
    initialized: value['initialized'] === true,
    logLevel: typeof value['logLevel'] === 'string' ? value['logLevel'] : null,
    subscriptions,
  };
}

/** Value of `sessions/<key>/end`. */
export interface SessionEndRecord {
  readonly reason: SessionEndReason;
  readonly atMs: number;
}

export const SESSION_END_REASONS = [
  'deleted',
  'resumption-rejected',
  'owner-lost',
  'idle',
  'expired',
  'server-gone',
  /** The history of the log that the session belonged to is over: proved to be broken, or by an operator. */
  'epoch-ended',
  'unknown',
] as const;
export type SessionEndReason = (typeof SESSION_END_REASONS)[number];

export function readSessionEnd(record: LogRecord): SessionEndRecord | null {
  const value = readObject(record);
  if (value === null) return null;
  const reason = SESSION_END_REASONS.find((known) => known === value['reason']) ?? 'unknown';
  return { reason, atMs: count(value['atMs']) ?? record.timestampMs };
}

/** Value of `meta/epoch/<token>`: a candidate. It counts only if `previous` is the epoch in force at its place. */
export interface EpochRecord {
  readonly token: string;
  readonly previous: string | null;
  readonly clusterId: string;
  readonly reason: string;
  /** When it was made, by the wall clock of whoever made it. */
  readonly atMs: number;
}

export function readEpochRecord(record: LogRecord): EpochRecord | null {
  const value = readObject(record);
  if (value === null || typeof value['token'] !== 'string' || typeof value['clusterId'] !== 'string') return null;
  const previous = value['previous'];
  if (previous !== null && typeof previous !== 'string') return null;
  return {
    token: value['token'],
    previous,
    clusterId: value['clusterId'],
    reason: text(value['reason']),
    atMs: count(value['atMs']) ?? record.timestampMs,
  };
}

/** Value of `meta/mark/<epoch>/<topic>/<p>`: how far the history of a partition is known to have come in this epoch. */
export interface HistoryMark {
  /** Everything below was acknowledged. */
  readonly end: number;
  /** A record that was read, by its offset and its checksum (as in event ids); `null` if none was. */
  readonly anchor: { readonly offset: number; readonly check: number } | null;
}

export function readHistoryMark(record: LogRecord): HistoryMark | null {
  const value = readObject(record);
  const end = count(value?.['end']);
  if (value === null || end === null) return null;
  const anchor = value['anchor'] ?? null;
  if (anchor === null) return { end, anchor: null };
  if (typeof anchor !== 'object' || !('offset' in anchor) || !('check' in anchor)) return null;
  const [offset, check] = [count(anchor.offset), count(anchor.check)];
  return offset === null || check === null || offset >= end ? null : { end, anchor: { offset, check } };
}

export function formatHistoryMark({ end, anchor }: HistoryMark): string {
  return JSON.stringify({ end, ...(anchor === null ? {} : { anchor }) });
}

/** Value of `meta/worker/<id>`: a heartbeat. */
export interface WorkerRecord {
  readonly worker: string;
  readonly epoch: string;
  /** Partitions whose claim in force is this worker's and that take new sessions. */
  readonly partitions: readonly number[];
  /** It stops: no new sessions. */
  readonly leaving: boolean;
  /** Rises by one with each heartbeat. */
  readonly beat: number;
}

export function readWorkerRecord(record: LogRecord): WorkerRecord | null {
  const value = readObject(record);
  if (value === null || typeof value['worker'] !== 'string') return null;
  const partitions = Array.isArray(value['partitions'])
    ? value['partitions'].map(count).filter((partition) => partition !== null)
    : [];
  return {
    worker: value['worker'],
    epoch: text(value['epoch']),
    partitions,
    leaving: value['leaving'] === true,
    beat: count(value['beat']) ?? 0,
  };
}

/** Value of `meta/checkpoint/<epoch>/<p>`: where a reader of `events` may begin, and the valid claims up to there. */
export interface CheckpointHint {
  readonly offset: number;
  readonly claims: readonly number[];
  /** Who holds the newest of the claims. */
  readonly worker: string;
}

export function readCheckpointHint(record: LogRecord): CheckpointHint | null {
  const value = readObject(record);
  const offset = value === null ? null : count(value['offset']);
  const claims = value === null ? null : readClaims(value['claims']);
  return offset === null || claims === null ? null : { offset, claims, worker: text(value?.['worker']) };
}

/** A list of claims: offsets, rising. `null` for anything else. */
export function readClaims(value: unknown): readonly number[] | null {
  if (!Array.isArray(value)) return null;
  const claims: number[] = [];
  for (const entry of value as readonly unknown[]) {
    const claim = count(entry);
    if (claim === null || claim <= (claims.at(-1) ?? -1)) return null;
    claims.push(claim);
  }
  return claims;
}

/** Value of `owner.checkpoint` (and of `owner.claimed`, with nothing open): all that a takeover needs from before it. */
export interface Checkpoint {
  /** The valid claims back to the start of the log, the writer's own last. */
  readonly claims: readonly number[];
  /** Every inbound record below was taken in: it is finished, or it is in `open`. */
  readonly inbound: number;
  /** Inbound is read again from here, to know the request ids of the last minute. At most `inbound`, at or below every open request. */
  readonly from: number;
  readonly open: readonly OpenRequest[];
  /** Keys of sessions whose end stands in `events` while it may not stand in `sessions` yet. Default: none. */
  readonly ending?: readonly string[];
  /** Requests below `inbound` that nobody will ever answer. Default: none. */
  readonly lost?: readonly LostRequests[];
}

/** Records of `inbound` that retention took before they could be served. Requests among them may have run, in part. */
export interface LostRequests {
  /** The first offset in `inbound`. */
  readonly from: number;
  /** Behind the last one. */
  readonly to: number;
  /** A position of `events`: from there on no message of their streams lies. */
  readonly since: number;
}

export interface OpenRequest {
  /** Offset in `inbound`. */
  readonly at: number;
  /** How often it was started (0: not yet). */
  readonly attempt: number;
  /** Whether anything was sent on its stream. */
  readonly sent: boolean;
}

export function readCheckpoint(record: LogRecord): Checkpoint | null {
  const value = readObject(record);
  if (value === null) return null;
  const claims = readClaims(value['claims']);
  const inbound = count(value['inbound']);
  const from = count(value['from']);
  if (claims === null || inbound === null || from === null || !Array.isArray(value['open'])) return null;
  const open: OpenRequest[] = [];
  for (const entry of value['open'] as readonly unknown[]) {
    if (!Array.isArray(entry)) return null;
    const [at, attempt, sent] = [count(entry[0]), count(entry[1]), count(entry[2])];
    if (at === null || attempt === null || sent === null || sent > 1) return null;
    open.push({ at, attempt, sent: sent === 1 });
  }
  const ending: unknown = value['ending'] ?? [];
  if (!Array.isArray(ending) || !ending.every((key) => typeof key === 'string')) return null;
  const lost = readLost(value['lost'] ?? []);
  if (lost === null) return null;
  return {
    claims,
    inbound,
    from,
    open,
    ...(ending.length === 0 ? {} : { ending }),
    ...(lost.length === 0 ? {} : { lost }),
  };
}

function readLost(value: unknown): LostRequests[] | null {
  if (!Array.isArray(value)) return null;
  const lost: LostRequests[] = [];
  for (const entry of value as readonly unknown[]) {
    if (!Array.isArray(entry)) return null;
    const [from, to, since] = [count(entry[0]), count(entry[1]), count(entry[2])];
    if (from === null || to === null || since === null) return null;
    lost.push({ from, to, since });
  }
  return lost;
}

export function formatCheckpoint(checkpoint: Checkpoint): string {
  const open = checkpoint.open.map(({ at, attempt, sent }) => [at, attempt, sent ? 1 : 0]);
  const { claims, inbound, from, ending = [], lost = [] } = checkpoint;
  return JSON.stringify({
    claims,
    inbound,
    from,
    open,
    ...(ending.length === 0 ? {} : { ending }),
    ...(lost.length === 0 ? {} : { lost: lost.map((range) => [range.from, range.to, range.since]) }),
  });
}
