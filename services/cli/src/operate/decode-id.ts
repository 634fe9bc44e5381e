/** What a client calls an id, taken apart. Pure. */
import {
  isEpoch,
  MAX_EVENT_ID_LENGTH,
  MAX_SESSION_ID_LENGTH,
  parseEventId,
  parseOffset,
  parsePartition,
  parseSessionId,
  parseStreamLabel,
} from '@throughline/protocol';
import type { EventId, SessionId } from '@throughline/protocol';

export type DecodedId =
  | { readonly kind: 'event'; readonly id: EventId }
  | { readonly kind: 'session'; readonly id: SessionId }
  /** `problem` names the field. */
  | { readonly kind: 'malformed'; readonly problem: string };

const EVENT_FORM = '<epoch>.<partition>.<offset>.<stream>.<seq>.<check>';
const SESSION_FORM = '<epoch>.<partition>.<from>.<created>.<key>.<mac>';

export function decodeId(text: string): DecodedId {
  const event = parseEventId(text);
  if (event !== null) return { kind: 'event', id: event };
  const session = parseSessionId(text);
  if (session !== null) return { kind: 'session', id: session.id };
  return { kind: 'malformed', problem: findProblem(text) };
}

function findProblem(text: string): string {
  const fields = text.split('.');
  if (fields.length !== 6)
    return `it has ${fields.length} fields between dots and not 6; an event id is ${EVENT_FORM}, a session id ${SESSION_FORM}`;
  const [epoch = '', partition = '', offset = '', fourth = ''] = fields;
  if (!isEpoch(epoch)) return `the first field, the epoch, is not ten of a-z and 2-7`;
  if (parsePartition(partition) === null) return 'the second field, the partition, is no decimal number';
  if (parseOffset(offset) === null) return 'the third field, an offset, is no decimal number';
  if (parseOffset(fourth) !== null) {
    if (text.length > MAX_SESSION_ID_LENGTH)
      return `as a session id it is longer than ${MAX_SESSION_ID_LENGTH} characters`;
    return 'as a session id its last two fields must be 22 characters of base64url each';
  }
  if (text.length > MAX_EVENT_ID_LENGTH) return `as an event id it is longer than ${MAX_EVENT_ID_LENGTH} characters`;
  if (parseStreamLabel(fourth.split('~')[0] ?? '') === null)
    return 'the fourth field is neither a stream (r<N> or s<A>) nor the time a session was created';
  return 'as an event id its stream, number or check (22 characters of base64url) is not as this product writes it';
}
