/** Makes records for cases, shows them in a form that is compared exactly, and reads whole ranges. */
import { encodeText, sha256, toBase64Url } from '@throughline/protocol';
import type { LogRecord, Offset, RecordInput } from '@throughline/protocol';
import type { Log, PartitionRef } from '../port.ts';

export const EVENTS: PartitionRef = { topic: 'events', partition: 1 };

export function textRecord(value: string, key = 'key'): RecordInput {
  return { key: encodeText(key), value: encodeText(value), headers: [['type', encodeText('test')]] };
}

/** Bytes as text: all of them if few, else their length and a digest. */
function showBytes(bytes: Uint8Array | null): string | null {
  if (bytes === null) return null;
  if (bytes.length > 256) return `${bytes.length} bytes ${toBase64Url(sha256(bytes))}`;
  return `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

export function showInput({ key, value, headers }: RecordInput): unknown {
  return {
    key: showBytes(key),
    value: showBytes(value),
    headers: headers.map(([name, bytes]) => [name, showBytes(bytes)]),
  };
}

export function showRecord(record: LogRecord): unknown {
  return { offset: record.offset, timestampMs: record.timestampMs, record: showInput(record) };
}

export function textOf(record: LogRecord): string {
  return new TextDecoder().decode(record.value ?? new Uint8Array(0));
}

/** Reads from `position` to the end as it is now. */
export async function readAll(log: Log, ref: PartitionRef, position: Offset, maxBytes?: number): Promise<LogRecord[]> {
  const { end } = await log.bounds(ref);
  const records: LogRecord[] = [];
  let at = position;
  while (at < end) {
    const batch = await log.read(ref, at, maxBytes === undefined ? {} : { maxBytes });
    // Not what was appended since: a batch may end inside of an append, and that end is none.
    records.push(...batch.records.filter(({ offset }) => offset < end));
    if (batch.next <= at) throw new Error(`a read at ${at} of ${end} does not get on`);
    at = batch.next;
  }
  return records;
}

export async function endOf(log: Log, ref: PartitionRef): Promise<Offset> {
  return (await log.bounds(ref)).end;
}
