/**
 * How an event of an SDK server stands in `events` of a log of its own: key = session key, value = the message, and in
 * headers the stream and what the event follows. So a reader needs nothing but the log to number a stream, and of two
 * processes that write one stream at once it takes one: what does not follow is not of the stream. Pure. SPEC: EVS-FORK.
 */
import { nextNumbering, startNumbering } from '@throughline/history';
import type { Numbering } from '@throughline/history';
import {
  anchorChecksum,
  CHAIN_BYTES,
  decodeText,
  encodeText,
  equalBytes,
  formatEventId,
  formatStreamLabel,
  fromBase64Url,
  HEADER,
  parseOffset,
  RECORD_FORMAT,
  requestStream,
  sha256,
  standaloneStream,
  streamTag,
  toBase64Url,
} from '@throughline/protocol';
import type { LogRecord, Partition, RecordInput, StreamLabel } from '@throughline/protocol';

/** Types of the records of this store, told apart from those of gateways and workers. */
const STORED_TYPE = { event: 'sdk.event', primer: 'sdk.primer' } as const;
/** The stream as the SDK calls it. */
const SDK_STREAM_HEADER = 'sdk-stream';
/** `<seq>.<chain>` of the event before it in its stream. */
const FOLLOWS_HEADER = 'follows';
/** The SDK's name of the standalone stream, the same in every session. */
export const SDK_STANDALONE = '_GET_stream';

const LABEL_BYTES = 6;

/** Whose events they are. */
export interface SessionPlace {
  readonly sessionId: string;
  readonly epoch: string;
  readonly partition: Partition;
  readonly key: string;
}

export interface StoredEvent {
  readonly sdkStream: string;
  readonly follows: Numbering;
  /** An id with empty data: it is not replayed and has no number of its own. */
  readonly isPrimer: boolean;
  readonly payload: Uint8Array;
  readonly record: LogRecord;
}

/** The label in event ids: `s0` for the standalone stream, `r` and 48 bits of a digest of its name for any other. */
export function labelOf(sdkStream: string): StreamLabel {
  if (sdkStream === SDK_STANDALONE) return standaloneStream(0);
  const digest = sha256(encodeText(sdkStream)).subarray(0, LABEL_BYTES);
  return requestStream(digest.reduce((number, byte) => number * 256 + byte, 0));
}

export function startOf(place: SessionPlace, label: StreamLabel): Numbering {
  return startNumbering(place.sessionId, label);
}

export function makeStored(
  place: SessionPlace,
  event: { readonly sdkStream: string; readonly json: string; readonly isPrimer: boolean },
  follows: Numbering,
): RecordInput {
  const headers: readonly (readonly [string, string])[] = [
    [HEADER.format, RECORD_FORMAT],
    [HEADER.type, event.isPrimer ? STORED_TYPE.primer : STORED_TYPE.event],
    [HEADER.stream, formatStreamLabel(labelOf(event.sdkStream))],
    [SDK_STREAM_HEADER, event.sdkStream],
    [FOLLOWS_HEADER, `${follows.seq}.${toBase64Url(follows.chain)}`],
  ];
  return {
    key: encodeText(place.key),
    value: encodeText(event.json),
    headers: headers.map(([name, text]) => [name, encodeText(text)] as const),
  };
}

/** An event of this session; `null` for anything else. Never throws. */
export function readStored(place: SessionPlace, record: LogRecord): StoredEvent | null {
  if (record.key === null || record.value === null || decodeText(record.key) !== place.key) return null;
  const headers = new Map(record.headers.map(([name, value]) => [name, decodeText(value)]));
  const type = headers.get(HEADER.type);
  const sdkStream = headers.get(SDK_STREAM_HEADER);
  const follows = parseFollows(headers.get(FOLLOWS_HEADER) ?? '');
  if (headers.get(HEADER.format) !== RECORD_FORMAT || sdkStream === undefined || follows === null) return null;
  if (type !== STORED_TYPE.event && type !== STORED_TYPE.primer) return null;
  return { sdkStream, follows, isPrimer: type === STORED_TYPE.primer, payload: record.value, record };
}

function parseFollows(text: string): Numbering | null {
  const [seqText = '', chainText = '', rest] = text.split('.');
  const seq = parseOffset(seqText);
  const chain = fromBase64Url(chainText);
  return rest === undefined && seq !== null && chain?.length === CHAIN_BYTES ? { seq, chain } : null;
}

export function isSame(one: Numbering, other: Numbering): boolean {
  return one.seq === other.seq && equalBytes(one.chain, other.chain);
}

/** Where the stream stands after this event. */
export function after(
  follows: Numbering,
  event: { readonly isPrimer: boolean; readonly payload: Uint8Array },
): Numbering {
  return event.isPrimer ? follows : nextNumbering(follows, event.payload);
}

/** The id of an event after which the stream stands at `at`. SPEC: EVS-ID. */
export function idOf(place: SessionPlace, label: StreamLabel, at: Numbering, record: LogRecord): string {
  return formatEventId({
    epoch: place.epoch,
    partition: place.partition,
    offset: record.offset,
    stream: label,
    seq: at.seq,
    tag: streamTag(place.sessionId, label),
    crc: anchorChecksum(record),
    chain: at.chain,
  });
}
