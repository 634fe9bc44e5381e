/**
 * Events of Throughline: the id names epoch, session, stream, number and chain, so that continuation is proved, event by
 * event: equal chains mean equal content up to here. SPEC: CLIENT-CHAINED.
 */
import {
  encodeText,
  equalBytes,
  extendChain,
  formatStreamLabel,
  fromBase64Url,
  parseEventId,
  startChain,
  streamTag,
  toBase64Url,
} from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import { eventDigest } from './event-digest.ts';
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import { reject } from './verdict.ts';
import type { EventVerdict, ReceivedEvent, Rejected } from './verdict.ts';

export function judgeChained(checkpoint: StreamCheckpoint, { id, data }: ReceivedEvent): EventVerdict {
  const parsed = id === null ? null : parseEventId(id);
  if (id === null || parsed === null)
    return reject('malformed-id', `an event came with the id ${JSON.stringify(id)}, which is none of this server`);
  const foreign = judgeOrigin(checkpoint, parsed, id);
  if (foreign !== null) return foreign;
  const label = formatStreamLabel(parsed.stream);
  const moved = { ...checkpoint, epoch: parsed.epoch, lastEventId: id, label };
  if (parsed.seq === 'end') return judgeEnd(moved, id, data);
  const chain = chainOf(checkpoint, parsed);
  const last = checkpoint.seq ?? 0;
  if (data === '') {
    if (parsed.seq > last) return reject('gap', `the cursor moved to message ${parsed.seq} after ${last}`);
    if (parsed.seq < last) return reject('replay-reset', `the cursor went back to message ${parsed.seq} from ${last}`);
    return equalBytes(chain, parsed.chain)
      ? { do: 'advance', next: { ...moved, seq: last, chain: toBase64Url(chain) } }
      : reject('diverged', `the server has other content before message ${last + 1}`);
  }
  if (parsed.seq > last + 1) return reject('gap', `message ${last + 1} was expected and ${parsed.seq} came`);
  const digest = eventDigest(id, data);
  if (parsed.seq <= last) {
    if (parsed.seq < last) return reject('replay-reset', `message ${parsed.seq} came again after ${last}`);
    return checkpoint.last?.digest === digest
      ? { do: 'drop' }
      : reject('diverged', `message ${last} came again with other content`);
  }
  const extended = extendChain(chain, encodeText(data));
  if (!equalBytes(extended, parsed.chain))
    return reject('diverged', `the content of message ${parsed.seq}, or of one before, is not what its id says`);
  const next = { ...moved, seq: parsed.seq, chain: toBase64Url(extended), last: { id, digest } };
  return { do: 'deliver', next, unproven: [] };
}

function judgeOrigin(checkpoint: StreamCheckpoint, parsed: EventId, id: string): Rejected | null {
  if (checkpoint.epoch !== null && parsed.epoch !== checkpoint.epoch)
    return reject('epoch-mismatch', `the stream was of epoch ${checkpoint.epoch} and ${id} is of ${parsed.epoch}`);
  const label = formatStreamLabel(parsed.stream);
  if (checkpoint.label !== null && label !== checkpoint.label)
    return reject('foreign-event', `${id} is of stream ${label}, not of ${checkpoint.label}`);
  if (parsed.stream.kind !== checkpoint.kind)
    return reject('foreign-event', `${id} came on a ${checkpoint.kind} stream`);
  if (parsed.requestId !== undefined && parsed.requestId !== checkpoint.requestId)
    return reject('foreign-event', `${id} answers another request`);
  if (checkpoint.sessionId === null || !equalBytes(streamTag(checkpoint.sessionId, parsed.stream), parsed.tag))
    return reject('foreign-event', `${id} is of another session`);
  return null;
}

/** The chain as this client computed it, so far. */
function chainOf(checkpoint: StreamCheckpoint, parsed: EventId): Uint8Array {
  const known = checkpoint.chain === null ? null : fromBase64Url(checkpoint.chain);
  return known ?? startChain(checkpoint.sessionId ?? '', parsed.stream);
}

/** The chain says nothing of what the gateway says by itself; so only an error may come this way. */
function judgeEnd(moved: StreamCheckpoint, id: string, data: string): EventVerdict {
  if (!isErrorResponse(data)) return reject('diverged', `${id} ends its stream with something that is no error`);
  return { do: 'deliver', next: { ...moved, last: { id, digest: eventDigest(id, data) } }, unproven: [] };
}

function isErrorResponse(data: string): boolean {
  try {
    const message = JSON.parse(data) as { readonly method?: unknown; readonly error?: unknown } | null;
    return message !== null && typeof message.error === 'object' && message.method === undefined;
  } catch {
    return false;
  }
}
