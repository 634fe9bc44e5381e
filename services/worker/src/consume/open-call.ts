/** A client's request between its arrival in `inbound` and the end of its stream. Plain state. */
import type { Effects } from '@throughline/history';
import { sha256, toBase64Url } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcRequest, Offset, StreamLabel } from '@throughline/protocol';
import type { BatchState } from './batch-table.ts';
import type { CallMemory } from './call-memory.ts';

/**
 * - `held`: taken in while the worker leaves; its successor dispatches it.
 * - `queued`: waits for a place. `starting`: waits until its start is read back. `running`: handed to the server.
 * - `done`: settled; what the server still says of it is dropped.
 */
export type CallState = 'held' | 'queued' | 'starting' | 'running' | 'done';

export interface OpenCall {
  readonly at: Offset;
  readonly stream: StreamLabel;
  readonly key: string;
  readonly message: JsonRpcRequest;
  readonly bodyHash: string;
  /** A position of `events` after which all messages of its stream lie. */
  readonly after: Offset | null;
  readonly batch: BatchState | null;
  readonly canPoll: boolean;
  readonly effects: Effects;
  /** The start must be read back before the server may see it. */
  readonly strict: boolean;
  attempt: number;
  sent: boolean;
  state: CallState;
  /** Streams of repetitions of this request, which get the same. */
  readonly mirrors: Mirror[];
  /** Offset of the request that this one repeats; its successors must know both. */
  mirrorOf: Offset | null;
  /** Cancels the timer that records its start, if one is set. */
  cancelTimer: (() => void) | null;
  /** Gives back the place that it holds among the running calls; `null`: it holds none. */
  place: (() => void) | null;
  /** What it said and heard under former owners; `null`: nothing. */
  memory: CallMemory | null;
}

export interface Mirror {
  readonly call: OpenCall;
  /** What came while earlier messages were still being copied; `null` once it is level. */
  pending: PendingCopy[] | null;
  pendingChars: number;
  /** More came than may wait: the copy is not complete and must not be taken for it. */
  hasOverflowed: boolean;
}

export interface PendingCopy {
  readonly json: string;
  readonly answer: boolean;
}

/** A settled request, kept for a while so that its repetition does not run again. */
export interface SettledCall {
  readonly at: Offset;
  readonly stream: StreamLabel;
  readonly bodyHash: string;
  readonly after: Offset | null;
}

/** Map key of a JSON-RPC id: 1 and "1" are two ids. */
export function idKey(id: JsonRpcId): string {
  return typeof id === 'number' ? `n${id}` : `s${id}`;
}

export function progressToken(message: JsonRpcRequest): JsonRpcId | null {
  const meta = message.params?.['_meta'];
  if (typeof meta !== 'object' || meta === null || !('progressToken' in meta)) return null;
  const { progressToken: token } = meta;
  return typeof token === 'string' || typeof token === 'number' ? token : null;
}

export function hashBody(body: Uint8Array): string {
  return toBase64Url(sha256(body).slice(0, 16));
}
