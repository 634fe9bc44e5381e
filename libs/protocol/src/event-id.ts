/**
 * The cursor in an SSE `id:` line: `<epoch>.<partition>.<offset>.<stream>.<seq>.<check>`. Opaque to clients, readable
 * by operators: partition and offset name the very record in Kafka. Pure and total. SPEC: ID-FORM, ID-CHECK, ID-TOTAL.
 */
import { fromBase64Url, sha256, toBase64Url } from '#digest';
import { isEpoch } from './epoch.ts';
import type { Epoch } from './epoch.ts';
import { parseOffset, parsePartition } from './position.ts';
import type { Offset, Partition } from './position.ts';
import { encodeText } from './record.ts';
import { formatJsonRpcId, formatStreamLabel, parseJsonRpcId, parseStreamLabel } from './stream-label.ts';
import type { JsonRpcId, StreamLabel } from './stream-label.ts';

export const MAX_EVENT_ID_LENGTH = 160;
export const CHAIN_BYTES = 8;
const TAG_BYTES = 4;
const CHECK_BYTES = 16;
const END = 'end';

export interface EventId {
  readonly epoch: Epoch;
  readonly partition: Partition;
  /** Position of the anchor in `events`. */
  readonly offset: Offset;
  readonly stream: StreamLabel;
  /** The JSON-RPC id of the request that an `r` stream answers, if it is short and safe. */
  readonly requestId?: JsonRpcId;
  /** Number of the message in its stream (1, 2, …; 0 before the first), or `end` on an error the gateway made itself. */
  readonly seq: number | 'end';
  /** 4 bytes: start of SHA-256 over session id and stream label. */
  readonly tag: Uint8Array;
  /** CRC-32 over the anchor. */
  readonly crc: number;
  /** 8 bytes: the stream's chain after `seq` messages. */
  readonly chain: Uint8Array;
}

/** Bytes 0–3 of the check: they name session and stream. */
export function streamTag(sessionId: string, stream: StreamLabel): Uint8Array {
  return sha256(encodeText(`${sessionId}\n${formatStreamLabel(stream)}`)).slice(0, TAG_BYTES);
}

/** The chain before the first message of a stream. */
export function startChain(sessionId: string, stream: StreamLabel): Uint8Array {
  return sha256(encodeText(`${sessionId}\n${formatStreamLabel(stream)}\nchain`)).slice(0, CHAIN_BYTES);
}

/** Input of {@link extendChain} for payloads of common size: filled and read within one call, so never shared. */
const scratch = new Uint8Array(4096);

/** The chain after a message whose `data` is `payload`. Equal chains mean equal content up to here. */
export function extendChain(chain: Uint8Array, payload: Uint8Array): Uint8Array {
  const length = chain.length + payload.length;
  const input = length <= scratch.length ? scratch.subarray(0, length) : new Uint8Array(length);
  input.set(chain, 0);
  input.set(payload, chain.length);
  return sha256(input).slice(0, CHAIN_BYTES);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index++) difference |= (a[index] ?? 0) ^ (b[index] ?? 0);
  return difference === 0;
}

export function formatEventId(id: EventId): string {
  const check = new Uint8Array(CHECK_BYTES);
  check.set(id.tag, 0);
  new DataView(check.buffer).setUint32(TAG_BYTES, id.crc);
  check.set(id.chain, TAG_BYTES + 4);
  const requestId = id.stream.kind === 'request' ? formatJsonRpcId(id.requestId) : null;
  const stream = formatStreamLabel(id.stream) + (requestId === null ? '' : `~${requestId}`);
  return `${id.epoch}.${id.partition}.${id.offset}.${stream}.${id.seq}.${toBase64Url(check)}`;
}

/** Any string is an event id or `null` (`cursor-malformed`); never throws. Accepts exactly what {@link formatEventId} writes. */
export function parseEventId(text: string): EventId | null {
  if (text.length > MAX_EVENT_ID_LENGTH) return null;
  const fields = text.split('.');
  if (fields.length !== 6) return null;
  const [epoch = '', partitionText = '', offsetText = '', streamText = '', seqText = '', checkText = ''] = fields;
  const partition = parsePartition(partitionText);
  const offset = parseOffset(offsetText);
  const tilde = streamText.indexOf('~');
  const stream = parseStreamLabel(tilde < 0 ? streamText : streamText.slice(0, tilde));
  const seq = seqText === END ? END : parseOffset(seqText);
  const check = checkText.length === 22 ? fromBase64Url(checkText) : null;
  if (!isEpoch(epoch) || partition === null || offset === null || stream === null || seq === null) return null;
  if (check?.length !== CHECK_BYTES) return null;
  let requestId: JsonRpcId | null = null;
  if (tilde >= 0) {
    requestId = stream.kind === 'request' ? parseJsonRpcId(streamText.slice(tilde + 1)) : null;
    if (requestId === null) return null;
  }
  const crc = new DataView(check.buffer, check.byteOffset).getUint32(TAG_BYTES);
  const tag = check.slice(0, TAG_BYTES);
  const chain = check.slice(TAG_BYTES + 4);
  return { epoch, partition, offset, stream, ...(requestId === null ? {} : { requestId }), seq, tag, crc, chain };
}
