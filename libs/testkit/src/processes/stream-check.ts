/** What a client may rely on within one stream, checked from the events alone: order, no gap, no repeat, equal content. */
import {
  encodeText,
  equalBytes,
  extendChain,
  formatStreamLabel,
  parseEventId,
  startChain,
} from '@throughline/protocol';
import type { SseItem } from './sse-parser.ts';

/** A message with the id under which it came. */
export interface StreamMessage {
  readonly id: string;
  readonly data: string;
}

/** How a stream broke: messages are missing, came again, are not those of the ids, or it cannot be read at all. */
export type StreamFault = 'lost' | 'repeated' | 'content' | 'malformed';

export class BrokenStream extends Error {
  readonly fault: StreamFault;

  constructor(fault: StreamFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/**
 * The messages of one stream as one client got them, over however many connections. Throws `BrokenStream` at the first event that
 * breaks a rule: another stream's id, a `seq` that is not the last one plus 1, a chain that is not that of the content.
 * Errors that a gateway made itself (`seq` is `end`) are taken as messages and end the count.
 */
export function checkStream(sessionId: string, items: readonly SseItem[]): readonly StreamMessage[] {
  const messages: StreamMessage[] = [];
  let label: string | undefined;
  let seq = 0;
  let chain: Uint8Array = new Uint8Array(0);
  let ended = false;
  for (const { kind, id, data } of items) {
    if (kind !== 'event' || (id === undefined && data === '')) continue;
    if (id === undefined) throw new BrokenStream('malformed', `a message without an id: ${data.slice(0, 200)}`);
    const cursor = parseEventId(id);
    if (cursor === null) throw new BrokenStream('malformed', `an id that does not parse: ${id}`);
    const own = formatStreamLabel(cursor.stream);
    if (label === undefined) {
      label = own;
      chain = startChain(sessionId, cursor.stream);
    }
    if (own !== label) throw new BrokenStream('malformed', `an event of ${own} on stream ${label}: ${id}`);
    if (cursor.seq === 'end') {
      ended = true;
      messages.push({ id, data });
      continue;
    }
    if (ended) throw new BrokenStream('repeated', `${id} comes after the end`);
    if (data !== '') {
      chain = extendChain(chain, encodeText(data));
      seq += 1;
      messages.push({ id, data });
    }
    if (cursor.seq !== seq)
      throw new BrokenStream(cursor.seq > seq ? 'lost' : 'repeated', `${id}: seq is ${cursor.seq}, expected ${seq}`);
    if (!equalBytes(cursor.chain, chain))
      throw new BrokenStream('content', `${id}: the chain is not that of the messages received`);
  }
  return messages;
}
