/** How far one stream was processed, and everything by which its continuation is judged. Immutable. SPEC: CLIENT-PROCESSED. */
import type { JsonRpcId } from '@throughline/protocol';

/** An event as it was processed: its id, and SHA-256 over id and payload. */
export interface ProcessedEvent {
  readonly id: string;
  readonly digest: string;
}

export interface StreamCheckpoint {
  readonly kind: 'request' | 'standalone';
  /** Of a request stream: the id under which the request was posted. */
  readonly requestId: JsonRpcId | null;
  /** `null` while the server has named none; some name none ever. */
  readonly sessionId: string | null;
  /** `X-MCP-Replay-Epoch` of the answers so far; `null` if the server sends none. */
  readonly epoch: string | null;
  /** The cursor: the newest id, also of events without data. */
  readonly lastEventId: string | null;
  /** The newest event with data. */
  readonly last: ProcessedEvent | null;
  /** Of a numbered stream: the number of the last event. */
  readonly seq: number | null;
  /** Of a chained stream: the chain after the last event, in base64url. */
  readonly chain: string | null;
  /** Of a chained stream: its label. */
  readonly label: string | null;
  /** Where ids say nothing: the events before the last one, newest last, at most {@link MAX_RECENT}. */
  readonly recent: readonly ProcessedEvent[];
}

/** Events that are remembered to tell a replay where ids are opaque. */
export const MAX_RECENT = 64;

/** The checkpoint of a stream that has not begun. */
export function newStream(
  kind: StreamCheckpoint['kind'],
  requestId: JsonRpcId | null,
  { sessionId, epoch }: Pick<StreamCheckpoint, 'sessionId' | 'epoch'>,
): StreamCheckpoint {
  return {
    kind,
    requestId,
    sessionId,
    epoch,
    lastEventId: null,
    last: null,
    seq: null,
    chain: null,
    label: null,
    recent: [],
  };
}
