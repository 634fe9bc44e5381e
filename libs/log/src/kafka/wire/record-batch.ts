/**
 * Record batches, format 2, as they stand in produce requests and fetch answers. kafkajs keeps headers in an object, which
 * loses their order and repeats, and drops what says where an empty batch ends; so they are read and written here.
 */
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { LogRecord, Offset, RecordHeader, RecordInput } from '@throughline/protocol';
import { encodeText } from '@throughline/protocol';
import { LogError } from '../../errors.ts';
import { recordBytes } from '../../record-size.ts';
import { ByteReader, ByteWriter, varintSize } from './bytes.ts';
import { crc32c } from './crc32c.ts';

/** Bytes of a batch before its first record. */
export const BATCH_OVERHEAD = 61;
const MAGIC_AT = 16;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;
const CODEC = 0x07;
const LOG_APPEND_TIME = 0x08;
const CONTROL = 0x20;
/** A compressed batch that grows beyond this is refused. */
const MAX_INFLATED_BYTES = 256 * 1024 * 1024;

export interface BatchStamp {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly timestampMs: number;
}

/** Bytes of a record in a batch, at most: its framing depends on its place. */
export function framedBytes(record: RecordInput): number {
  // Attributes, timestamp delta (0), offset delta (at most 5 bytes), and the record's own length (at most 5).
  let bytes = 12 + fieldSize(record.key) + fieldSize(record.value) + varintSize(record.headers.length);
  for (const [name, value] of record.headers) {
    const length = encodeText(name).length;
    bytes += varintSize(length) + length + fieldSize(value);
  }
  return bytes;
}

function fieldSize(value: Uint8Array | null): number {
  return value === null ? 1 : varintSize(value.length) + value.length;
}

/** One batch, uncompressed. All records get the same timestamp. */
export function encodeBatch(records: readonly RecordInput[], stamp: BatchStamp): Buffer {
  const writer = new ByteWriter(records.reduce((sum, record) => sum + framedBytes(record), BATCH_OVERHEAD));
  writer.int64(0).int32(0).int32(-1).int8(2).int32(0).int16(0);
  writer
    .int32(records.length - 1)
    .int64(stamp.timestampMs)
    .int64(stamp.timestampMs);
  writer.int64(stamp.producerId).int16(stamp.producerEpoch).int32(stamp.firstSequence).int32(records.length);
  records.forEach((record, index) => {
    writeRecord(writer, record, index);
  });
  const batch = writer.done();
  writer.patchInt32(8, batch.length - 12);
  writer.patchInt32(CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)));
  return batch;
}

function writeRecord(writer: ByteWriter, record: RecordInput, index: number): void {
  const headers = record.headers.map(([name, value]) => [encodeText(name), value] as const);
  let length = 2 + varintSize(index) + fieldSize(record.key) + fieldSize(record.value) + varintSize(headers.length);
  for (const [name, value] of headers) length += fieldSize(name) + fieldSize(value);
  writer.varint(length).int8(0).varint(0).varint(index);
  writeField(writer, record.key);
  writeField(writer, record.value);
  writer.varint(headers.length);
  for (const [name, value] of headers) {
    writeField(writer, name);
    writeField(writer, value);
  }
}

function writeField(writer: ByteWriter, value: Uint8Array | null): void {
  if (value === null) writer.varint(-1);
  else writer.varint(value.length).raw(value);
}

export interface DecodedBatches {
  /** Records at or above the position that was asked for; control records are left out. */
  readonly records: LogRecord[];
  /** Where to go on: behind the last whole batch, or behind the last record if `maxBytes` ended it before. */
  readonly next: Offset;
}

/**
 * Reads whole batches, and of their records those from `from` on, until `maxBytes` (key, value, headers) are full; at
 * least one. A batch that the answer cuts off is left for the next fetch. Errors: `LOG_INCOMPATIBLE`.
 */
export function decodeBatches(bytes: Buffer, from: Offset, maxBytes: number): DecodedBatches {
  const records: LogRecord[] = [];
  let next = from;
  let budget = maxBytes;
  for (let at = 0; at + BATCH_OVERHEAD <= bytes.length;) {
    const end = at + 12 + bytes.readInt32BE(at + 8);
    if (end > bytes.length) break;
    const batch = bytes.subarray(at, end);
    at = end;
    const magic = batch.readInt8(MAGIC_AT);
    if (magic !== 2)
      throw new LogError('LOG_INCOMPATIBLE', `a batch has format ${magic}; let its producer write format 2`);
    const reader = new ByteReader(batch);
    const base = reader.int64();
    reader.at = ATTRIBUTES_AT;
    const attributes = reader.int16();
    const lastOffset = base + reader.int32();
    const firstTimestamp = reader.int64();
    const maxTimestamp = reader.int64();
    reader.at += 14;
    const count = reader.int32();
    if (lastOffset < from) continue;
    if ((attributes & CONTROL) === 0) {
      const body = inflate(batch.subarray(BATCH_OVERHEAD), attributes & CODEC);
      for (let index = 0; index < count; index++) {
        const length = body.varint();
        const endOfRecord = body.at + length;
        body.int8();
        const delta = body.varint();
        const offset = base + body.varint();
        if (offset < from) {
          body.at = endOfRecord;
          continue;
        }
        // A copy of its own: a record that is kept must not keep the answer it came with.
        const own = Buffer.from(new Uint8Array(body.raw(endOfRecord - body.at)).buffer);
        const timestampMs = (attributes & LOG_APPEND_TIME) === 0 ? firstTimestamp + delta : maxTimestamp;
        const record = readRecord(new ByteReader(own), offset, timestampMs);
        budget -= recordBytes(record);
        if (budget < 0 && records.length > 0) return { records, next };
        records.push(record);
        next = offset + 1;
      }
    }
    next = Math.max(next, lastOffset + 1);
  }
  return { records, next };
}

function readRecord(reader: ByteReader, offset: Offset, timestampMs: number): LogRecord {
  const key = readField(reader);
  const value = readField(reader);
  const headers: RecordHeader[] = [];
  for (let count = reader.varint(); count > 0; count--) {
    const name = reader.raw(reader.varint()).toString('utf8');
    // A null header value of a foreign producer reads as empty: our headers have none.
    headers.push([name, readField(reader) ?? new Uint8Array(0)]);
  }
  return { offset, timestampMs, key, value, headers };
}

function readField(reader: ByteReader): Uint8Array | null {
  const length = reader.varint();
  if (length < 0) return null;
  const view = reader.raw(length);
  return new Uint8Array(view.buffer, view.byteOffset, view.length);
}

function inflate(body: Buffer, codec: number): ByteReader {
  switch (codec) {
    case 0:
      return new ByteReader(body);
    case 1:
      return new ByteReader(gunzipSync(body, { maxOutputLength: MAX_INFLATED_BYTES }));
    case 4:
      return new ByteReader(
        zstdDecompressSync(body, {
          maxOutputLength: MAX_INFLATED_BYTES,
          params: { [constants.ZSTD_d_windowLogMax]: 27 },
        }),
      );
    default:
      throw new LogError(
        'LOG_INCOMPATIBLE',
        `a batch is compressed with ${codec === 2 ? 'snappy' : codec === 3 ? 'lz4' : `codec ${codec}`}, which cannot be read; ` +
          'with compression.type=uncompressed on the topic the broker unpacks what producers send',
        { cure: 'apply-topics' },
      );
  }
}
