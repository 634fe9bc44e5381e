/** A log record as stored and read: bytes that any Kafka tool shows as text. */
import { crc32 } from '#digest';
import type { Offset } from './position.ts';

/** One header: an ASCII name and the bytes of its value (UTF-8 text for every header this product writes). */
export type RecordHeader = readonly [name: string, value: Uint8Array];

/** What a producer appends. The log adds the offset and the timestamp. */
export interface RecordInput {
  readonly key: Uint8Array | null;
  /** `null` is a tombstone (compacted topics only). */
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
}

export interface LogRecord extends RecordInput {
  readonly offset: Offset;
  /** Milliseconds since the Unix epoch, given by the log when it appended the record. */
  readonly timestampMs: number;
}

const encoder = new TextEncoder();
// A byte order mark is kept: different bytes that are UTF-8 are different text, so no two keys read the same.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const NUL = new Uint8Array([0]);

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Never throws: bytes that are not UTF-8 become U+FFFD. */
export function decodeText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/**
 * CRC-32 over an anchor: key, NUL, value, NUL, each header as name NUL value NUL in order, timestamp in decimal.
 * SPEC: ID-CHECK.
 */
export function anchorChecksum(record: LogRecord): number {
  const { key, value } = record;
  let crc = key === null ? 0 : crc32(key, 0);
  crc = crc32(NUL, crc);
  if (value !== null) crc = crc32(value, crc);
  return crc32(encodeTrailer(record), crc);
}

/** What follows the value, in one piece: a digest call costs far more than the few bytes of a header. */
function encodeTrailer(record: LogRecord): Uint8Array {
  const time = String(record.timestampMs);
  let bound = 1 + time.length;
  // One UTF-16 unit is at most three bytes of UTF-8.
  for (const [name, value] of record.headers) bound += 3 * name.length + value.length + 2;
  const bytes = new Uint8Array(bound);
  let length = 1;
  for (const [name, value] of record.headers) {
    length += writeText(name, bytes, length) + 1;
    bytes.set(value, length);
    length += value.length + 1;
  }
  length += writeText(time, bytes, length);
  return bytes.subarray(0, length);
}

/** Writes UTF-8 and returns its length. ASCII, nearly always, needs no encoder. */
function writeText(text: string, into: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) return encoder.encodeInto(text, into.subarray(at)).written;
    into[at + index] = unit;
  }
  return text.length;
}
