/**
 * Typed views of the records of `events` and `inbound`, read from their headers alone, so that replicas of different
 * versions accept and number the same records. Writers and readers of the same shapes stand side by side. SPEC: REC-*.
 */
import {
  BATCH_VERSION,
  EVENT_TYPE,
  HEADER,
  INBOUND_TYPE,
  NO_PREDECESSOR,
  RECORD_FORMAT,
  STANDALONE,
} from './headers.ts';
import { parseOffset } from './position.ts';
import type { Offset } from './position.ts';
import { quoted } from './quoted.ts';
import { decodeText, encodeText } from './record.ts';
import type { LogRecord, RecordHeader, RecordInput } from './record.ts';
import { formatStreamLabel, parseStreamLabel } from './stream-label.ts';
import type { JsonRpcId, StreamLabel } from './stream-label.ts';

/** A stream as records name it: a label, or the standalone stream in force. */
export type StreamTarget = StreamLabel | typeof STANDALONE;

export type EventBody =
  | {
      readonly type: 'message';
      readonly stream: StreamTarget;
      readonly end: boolean;
      readonly answers: Offset | null;
      /** Requests of the client to any of which it may belong; empty: it is known whose it is. `unknown`: of any that runs. */
      readonly among: readonly Offset[] | 'unknown';
    }
  | { readonly type: 'attached'; readonly stream: StreamTarget; readonly attachment: string }
  | { readonly type: 'closed'; readonly stream: StreamTarget }
  | { readonly type: 'ended'; readonly stream: StreamLabel }
  | { readonly type: 'alias'; readonly stream: StreamLabel; readonly of: StreamLabel }
  | { readonly type: 'started'; readonly stream: StreamLabel; readonly attempt: number }
  | { readonly type: 'sessionEnded' }
  | { readonly type: 'claimed'; readonly predecessor: Offset | null; readonly worker: string; readonly epoch: string }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'released' }
  | { readonly type: 'probe' };

export interface EventRecord {
  readonly offset: Offset;
  /** Session key; `''` on records of the partition itself (claims, checkpoints, releases, probes). */
  readonly key: string;
  /** The claim under which the record was written; `null` for records that need none (gateways', foreign producers'). */
  readonly owner: Offset | null;
  readonly body: EventBody;
  readonly record: LogRecord;
}

/** Where a member stands in its batch. */
export interface BatchPlace {
  readonly index: number;
  readonly count: number;
  /** The ids of all members, by place; `null` where one is no request. Absent if the record does not tell them. */
  readonly ids?: readonly (JsonRpcId | null)[];
}

export interface InboundRecord {
  readonly offset: Offset;
  readonly key: string;
  readonly body:
    | {
        readonly type: 'message';
        readonly server: string;
        readonly principal: string;
        readonly version: string;
        readonly batch: BatchPlace | null;
        readonly after: Offset | null;
      }
    | { readonly type: 'sessionEnd'; readonly server: string }
    | {
        readonly type: 'produced';
        readonly server: string;
        /** Names the message in its session. */
        readonly idempotencyKey: string;
        /** The message is void if its timestamp in the log is later; `null`: never. Milliseconds since the Unix epoch. */
        readonly untilMs: number | null;
      }
    /** Of the partition itself: its key is `''`. */
    | { readonly type: 'probe' };
  readonly record: LogRecord;
}

/** Why a record cannot be used; it is counted, logged with its position and copied to `dead-letter`. */
export interface Unreadable {
  readonly unreadable: string;
}

function headersOf(record: LogRecord): Map<string, string> {
  const map = new Map<string, string>();
  for (const [name, value] of record.headers) if (!map.has(name)) map.set(name, decodeText(value));
  return map;
}

/** `null`: it is of the format that this version reads. */
function otherFormat(headers: ReadonlyMap<string, string>): Unreadable | null {
  const format = headers.get(HEADER.format) ?? RECORD_FORMAT;
  if (format === RECORD_FORMAT) return null;
  return { unreadable: `format ${quoted(format, 16)}; this version reads ${RECORD_FORMAT}` };
}

function parseTarget(text: string | undefined): StreamTarget | null {
  if (text === undefined) return null;
  return text === STANDALONE ? STANDALONE : parseStreamLabel(text);
}

function parseRequestLabel(text: string | undefined): StreamLabel | null {
  const label = text === undefined ? null : parseStreamLabel(text);
  return label?.kind === 'request' ? label : null;
}

/** What cannot be read is neither none nor a reason to lose the message: then it may be the question of any that runs. */
function parseAmong(text: string | undefined): readonly Offset[] | 'unknown' {
  if (text === undefined) return [];
  const offsets: Offset[] = [];
  for (const each of text.split(',')) {
    const offset = parseOffset(each);
    if (offset === null) return 'unknown';
    offsets.push(offset);
  }
  return offsets;
}

function parseBody(type: string, headers: Map<string, string>): EventBody | Unreadable {
  const streamText = headers.get(HEADER.stream);
  switch (type) {
    case EVENT_TYPE.message: {
      const stream = parseTarget(streamText);
      if (stream === null || (stream !== STANDALONE && stream.kind === 'standalone'))
        return { unreadable: 'message: header stream is neither s nor r<N>' };
      const answersText = headers.get(HEADER.answers);
      const answers = answersText === undefined ? null : parseOffset(answersText);
      // Not taken as absent: a request that is answered would count as open, and could run again.
      if (answersText !== undefined && answers === null)
        return { unreadable: 'message: header answers is not an offset' };
      const among = parseAmong(headers.get(HEADER.among));
      return { type: 'message', stream, end: headers.get(HEADER.end) === '1', answers, among };
    }
    case EVENT_TYPE.attached: {
      const stream = parseTarget(streamText);
      const attachment = headers.get(HEADER.attachment);
      if (stream === null || !attachment)
        return { unreadable: 'stream.attached: header stream or attachment is missing' };
      return { type: 'attached', stream, attachment };
    }
    case EVENT_TYPE.closed: {
      const stream = parseTarget(streamText);
      return stream === null ? { unreadable: 'stream.closed: header stream is missing' } : { type: 'closed', stream };
    }
    case EVENT_TYPE.ended: {
      const stream = parseRequestLabel(streamText);
      return stream === null ? { unreadable: 'stream.ended: header stream is not r<N>' } : { type: 'ended', stream };
    }
    case EVENT_TYPE.started: {
      const stream = parseRequestLabel(streamText);
      const attempt = parseOffset(headers.get(HEADER.attempt) ?? '1');
      // Attempt 0 would say of a request that was started that it was not.
      if (stream === null || attempt === null || attempt === 0)
        return { unreadable: 'request.started: header stream is not r<N>, or attempt is not a number from 1' };
      return { type: 'started', stream, attempt };
    }
    case EVENT_TYPE.alias: {
      const [aliasText, ofText, rest] = (streamText ?? '').split('=');
      const stream = parseRequestLabel(aliasText);
      const of = parseRequestLabel(ofText);
      return stream === null || of === null || rest !== undefined
        ? { unreadable: 'stream.alias: header stream is not r<M>=r<N>' }
        : { type: 'alias', stream, of };
    }
    case EVENT_TYPE.sessionEnded:
      return { type: 'sessionEnded' };
    case EVENT_TYPE.claimed: {
      const text = headers.get(HEADER.predecessor);
      const predecessor = text === undefined || text === NO_PREDECESSOR ? null : parseOffset(text);
      if (text === undefined || (predecessor === null && text !== NO_PREDECESSOR))
        return { unreadable: 'owner.claimed: header predecessor is missing' };
      return {
        type: 'claimed',
        predecessor,
        worker: headers.get(HEADER.worker) ?? '',
        epoch: headers.get(HEADER.epoch) ?? '',
      };
    }
    case EVENT_TYPE.checkpoint:
      return { type: 'checkpoint' };
    case EVENT_TYPE.released:
      return { type: 'released' };
    case EVENT_TYPE.probe:
      return { type: 'probe' };
    default:
      return { unreadable: `unknown type ${quoted(type, 64)}` };
  }
}

const PARTITION_TYPES: ReadonlySet<EventBody['type']> = new Set(['claimed', 'checkpoint', 'released', 'probe']);

export function readEventRecord(record: LogRecord): EventRecord | Unreadable {
  const headers = headersOf(record);
  const other = otherFormat(headers);
  if (other !== null) return other;
  const body = parseBody(headers.get(HEADER.type) ?? '', headers);
  if ('unreadable' in body) return body;
  const key = record.key === null ? '' : decodeText(record.key);
  if (key === '' && !PARTITION_TYPES.has(body.type)) return { unreadable: 'the key (session key) is missing' };
  const ownerText = headers.get(HEADER.owner);
  const owner = ownerText === undefined ? null : parseOffset(ownerText);
  if (ownerText !== undefined && owner === null) return { unreadable: 'header owner is not an offset' };
  if (owner === null && (body.type === 'checkpoint' || body.type === 'released'))
    return { unreadable: `${body.type}: header owner is missing` };
  return { offset: record.offset, key, owner, body, record };
}

export function readInboundRecord(record: LogRecord): InboundRecord | Unreadable {
  const headers = headersOf(record);
  const other = otherFormat(headers);
  if (other !== null) return other;
  const key = record.key === null ? '' : decodeText(record.key);
  const type = headers.get(HEADER.type);
  if (type === INBOUND_TYPE.probe) return { offset: record.offset, key, body: { type: 'probe' }, record };
  if (key === '') return { unreadable: 'the key (session key) is missing' };
  const server = headers.get(HEADER.server) ?? '';
  if (type === INBOUND_TYPE.sessionEnd)
    return { offset: record.offset, key, body: { type: 'sessionEnd', server }, record };
  if (type === INBOUND_TYPE.produced) return readProduced(record, key, server, headers);
  if (type !== INBOUND_TYPE.message) return { unreadable: `unknown type ${quoted(type ?? '', 64)}` };
  const batchText = headers.get(HEADER.batch);
  const batch = batchText === undefined ? null : parseBatch(batchText, headers.get(HEADER.batchIds));
  if (batchText !== undefined && batch === null) return { unreadable: 'header batch is not i/n' };
  // The first member would lie before the log: there is no stream r<offset − i>.
  if (batch !== null && batch.index > record.offset) return { unreadable: 'header batch: i is above the offset' };
  const after = parseOffset(headers.get(HEADER.after) ?? '');
  const principal = headers.get(HEADER.principal) ?? '';
  const version = headers.get(HEADER.protocolVersion) ?? BATCH_VERSION;
  return { offset: record.offset, key, body: { type: 'message', server, principal, version, batch, after }, record };
}

/** 1 to 128 characters of visible ASCII. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/;

/** Whether a message of a producer may be called `text`. SPEC: PRD-KEY. */
export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

function readProduced(
  record: LogRecord,
  key: string,
  server: string,
  headers: Map<string, string>,
): InboundRecord | Unreadable {
  const idempotencyKey = headers.get(HEADER.idempotencyKey) ?? '';
  // Without a name a second copy could not be told from another message.
  if (!isIdempotencyKey(idempotencyKey))
    return { unreadable: 'producer.message: header idempotency-key is not 1 to 128 characters of visible ASCII' };
  const untilText = headers.get(HEADER.until);
  const untilMs = untilText === undefined ? null : parseOffset(untilText);
  // Not taken as absent: a copy that comes too late would be told twice.
  if (untilText !== undefined && untilMs === null)
    return { unreadable: 'producer.message: header until is not a time in milliseconds' };
  return { offset: record.offset, key, body: { type: 'produced', server, idempotencyKey, untilMs }, record };
}

function parseBatch(text: string, idsText: string | undefined): BatchPlace | null {
  const [indexText = '', countText = '', rest] = text.split('/');
  const index = parseOffset(indexText);
  const count = parseOffset(countText);
  if (rest !== undefined || index === null || count === null || index >= count) return null;
  const ids = idsText === undefined ? null : parseBatchIds(idsText, count);
  return { index, count, ...(ids === null ? {} : { ids }) };
}

/** Longest header that tells the ids of a batch, in characters: each member carries it. */
const MAX_BATCH_IDS = 1024;

/** For the members of one batch; `null` if they are too long to be told. */
export function formatBatchIds(ids: readonly (JsonRpcId | null)[]): string | null {
  const text = JSON.stringify(ids);
  return text.length <= MAX_BATCH_IDS ? text : null;
}

/** What is not what {@link formatBatchIds} writes counts as absent. */
function parseBatchIds(text: string, count: number): readonly (JsonRpcId | null)[] | null {
  if (text.length > MAX_BATCH_IDS) return null;
  try {
    const ids: unknown = JSON.parse(text);
    return Array.isArray(ids) && ids.length === count && ids.every(isIdOrNull) ? ids : null;
  } catch {
    return null;
  }
}

function isIdOrNull(id: unknown): id is JsonRpcId | null {
  return id === null || typeof id === 'string' || Number.isSafeInteger(id);
}

/** The stream that answers an inbound request: `r<offset − i>` for a member of a batch. */
export function streamOfRequest(record: InboundRecord): StreamLabel {
  const index = record.body.type === 'message' && record.body.batch !== null ? record.body.batch.index : 0;
  return { kind: 'request', at: record.offset - index };
}

// Writers.

type HeaderFields = Partial<Record<Exclude<keyof typeof HEADER, 'format' | 'type'>, string | null>>;

/** A record input with readable headers, in the order given, behind `v` and `type`. `null` fields are left out. */
export function makeRecord(
  type: string,
  key: string | null,
  value: Uint8Array | string | null,
  fields: HeaderFields,
): RecordInput {
  const headers: RecordHeader[] = [
    [HEADER.format, encodeText(RECORD_FORMAT)],
    [HEADER.type, encodeText(type)],
  ];
  for (const [field, text] of Object.entries(fields)) {
    if (text !== null) headers.push([HEADER[field as keyof typeof HEADER], encodeText(text)]);
  }
  return {
    key: key === null ? null : encodeText(key),
    value: typeof value === 'string' ? encodeText(value) : value,
    headers,
  };
}

export function formatTarget(stream: StreamTarget): string {
  return stream === STANDALONE ? STANDALONE : formatStreamLabel(stream);
}
