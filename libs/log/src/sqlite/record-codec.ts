/**
 * Records as bytes between the threads, and headers as bytes in the file.
 * Between the threads: [offset f64, timestamp f64 if read,] key, value and header lengths u32 (all ones: null), then the bytes; little-endian.
 * In the file (format v1): each header is name length u16, name in UTF-8, value length u32, value; big-endian.
 */
import { encodeText, HEADER } from '@throughline/protocol';
import type { LogRecord, Offset, RecordHeader, RecordInput } from '@throughline/protocol';

const NULL_LENGTH = 0xffffffff;
const FRAME = 12;
const STAMP = 16;
export const MAX_HEADER_NAME_BYTES = 0xffff;
/** Holds the bytes of headers that could not be read. */
const DAMAGED_HEADERS = 'damaged-headers';
const DAMAGED: readonly RecordHeader[] = [[HEADER.format, encodeText('damaged headers')]];

export interface StoredRow {
  readonly offset: Offset;
  readonly timestampMs: number;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: Uint8Array | null;
}

export interface FramedRecord {
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: Uint8Array;
}

function headersBytes(headers: readonly RecordHeader[]): number {
  let bytes = 0;
  for (const [name, value] of headers) bytes += 6 + Buffer.byteLength(name) + value.length;
  return bytes;
}

export function framedBytes(record: RecordInput): number {
  return FRAME + (record.key?.length ?? 0) + (record.value?.length ?? 0) + headersBytes(record.headers);
}

/** Writes one record at `at`; returns where the next one goes. */
export function writeRecord(into: Buffer, at: number, record: RecordInput): number {
  const { key, value, headers } = record;
  into.writeUInt32LE(key === null ? NULL_LENGTH : key.length, at);
  into.writeUInt32LE(value === null ? NULL_LENGTH : value.length, at + 4);
  into.writeUInt32LE(headersBytes(headers), at + 8);
  let cursor = at + FRAME;
  if (key !== null) {
    into.set(key, cursor);
    cursor += key.length;
  }
  if (value !== null) {
    into.set(value, cursor);
    cursor += value.length;
  }
  for (const [name, bytes] of headers) {
    const nameBytes = into.write(name, cursor + 2);
    into.writeUInt16BE(nameBytes, cursor);
    cursor += 2 + nameBytes;
    into.writeUInt32BE(bytes.length, cursor);
    cursor += 4;
    into.set(bytes, cursor);
    cursor += bytes.length;
  }
  return cursor;
}

/** Reads `count` records as framed by {@link writeRecord}, headers left in their stored form. */
export function readFramed(from: Buffer, at: number, count: number): FramedRecord[] {
  const records: FramedRecord[] = [];
  let cursor = at;
  for (let index = 0; index < count; index++) {
    const frame = readFrame(from, cursor);
    records.push({ key: frame.key, value: frame.value, headers: from.subarray(frame.headersAt, frame.end) });
    cursor = frame.end;
  }
  return records;
}

/** As {@link readFramed}, as log records at rising offsets from `first`. */
export function readAppended(from: Buffer, at: number, count: number, first: Offset, timestampMs: number): LogRecord[] {
  const records: LogRecord[] = [];
  let cursor = at;
  for (let index = 0; index < count; index++) {
    const frame = readFrame(from, cursor);
    const headers = decodeHeaders(from, frame.headersAt, frame.end);
    records.push({ offset: first + index, timestampMs, key: frame.key, value: frame.value, headers });
    cursor = frame.end;
  }
  return records;
}

export function writeRows(rows: readonly StoredRow[]): Buffer {
  let total = 0;
  for (const row of rows)
    total += STAMP + FRAME + (row.key?.length ?? 0) + (row.value?.length ?? 0) + (row.headers?.length ?? 0);
  // Slow: not from the shared pool, so that the memory can be transferred to the other thread.
  const bytes = Buffer.allocUnsafeSlow(total);
  let at = 0;
  for (const { offset, timestampMs, key, value, headers } of rows) {
    bytes.writeDoubleLE(offset, at);
    bytes.writeDoubleLE(timestampMs, at + 8);
    bytes.writeUInt32LE(key === null ? NULL_LENGTH : key.length, at + 16);
    bytes.writeUInt32LE(value === null ? NULL_LENGTH : value.length, at + 20);
    bytes.writeUInt32LE(headers === null ? 0 : headers.length, at + 24);
    at += STAMP + FRAME;
    for (const part of [key, value, headers]) {
      if (part === null) continue;
      bytes.set(part, at);
      at += part.length;
    }
  }
  return bytes;
}

export function readRows(bytes: Uint8Array, count: number): LogRecord[] {
  const from = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const records: LogRecord[] = [];
  let cursor = 0;
  for (let index = 0; index < count; index++) {
    const offset = from.readDoubleLE(cursor);
    const timestampMs = from.readDoubleLE(cursor + 8);
    const frame = readFrame(from, cursor + STAMP);
    const headers = decodeHeaders(from, frame.headersAt, frame.end);
    records.push({ offset, timestampMs, key: frame.key, value: frame.value, headers });
    cursor = frame.end;
  }
  return records;
}

function readFrame(
  from: Buffer,
  at: number,
): { key: Uint8Array | null; value: Uint8Array | null; headersAt: number; end: number } {
  const keyBytes = from.readUInt32LE(at);
  const valueBytes = from.readUInt32LE(at + 4);
  const valueAt = at + FRAME + (keyBytes === NULL_LENGTH ? 0 : keyBytes);
  const headersAt = valueAt + (valueBytes === NULL_LENGTH ? 0 : valueBytes);
  return {
    key: keyBytes === NULL_LENGTH ? null : plain(from, at + FRAME, keyBytes),
    value: valueBytes === NULL_LENGTH ? null : plain(from, valueAt, valueBytes),
    headersAt,
    end: headersAt + from.readUInt32LE(at + 8),
  };
}

/**
 * Where the bytes are no headers the record is one of a format that nobody reads, which names the damage, and keeps
 * them: whoever reads it passes over it as over any other that it cannot read. Never throws. SPEC: LOG-FILE-HEADERS.
 */
function decodeHeaders(from: Buffer, start: number, end: number): RecordHeader[] {
  const headers: RecordHeader[] = [];
  let at = start;
  while (at < end) {
    const nameEnd = end - at < 2 ? Infinity : at + 2 + from.readUInt16BE(at);
    const valueAt = nameEnd + 4;
    const next = valueAt > end ? Infinity : valueAt + from.readUInt32BE(nameEnd);
    if (next > end) return [...DAMAGED, [DAMAGED_HEADERS, plain(from, start, end - start)]];
    headers.push([from.toString('utf8', at + 2, nameEnd), plain(from, valueAt, next - valueAt)]);
    at = next;
  }
  return headers;
}

/** A view, no copy, and no Buffer: what callers get compares and serializes as plain bytes. */
function plain(from: Buffer, at: number, length: number): Uint8Array {
  return new Uint8Array(from.buffer, from.byteOffset + at, length);
}
