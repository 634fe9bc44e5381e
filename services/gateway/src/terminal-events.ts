/** The last words on a request stream that the gateway says by itself. SPEC: GW-REFUSED, GW-ENDED. */
import { errorResponse, formatEventId } from '@throughline/protocol';
import type { JsonRpcErrorObject, JsonRpcId, Offset, StreamLabel } from '@throughline/protocol';
import { formatEvent } from './sse.ts';

export interface TerminalId {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: Offset;
  readonly stream: StreamLabel;
  readonly tag: Uint8Array;
}

const NO_CHAIN = new Uint8Array(8);

/**
 * Errors that the gateway makes itself: one a pending request. The last one's id ends with `end`, so that resuming it
 * gets 204; the others have none, or a client that was cut off between them would never hear of the rest.
 */
export function terminalEvents(id: TerminalId, pending: readonly JsonRpcId[], error: JsonRpcErrorObject): string {
  const eventId = formatEventId({ ...id, seq: 'end', crc: 0, chain: NO_CHAIN });
  const texts = (pending.length === 0 ? [null] : pending).map((each) => JSON.stringify(errorResponse(each, error)));
  const last = texts.pop() ?? '';
  return texts.map((text) => formatEvent(null, text)).join('') + formatEvent(eventId, last);
}
