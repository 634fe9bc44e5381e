import { encodeText, readEventRecord, readInboundRecord } from '@throughline/protocol';
import type { LogRecord, RecordHeader } from '@throughline/protocol';
import { fuzz, FUZZ_DEADLINE_MS, mutations } from '@throughline/testkit/fuzz';
import { describe, expect, it } from 'vitest';
import { itemAt } from '../item-at.ts';
import { framedBytes, readFramed, readRows, writeRecord, writeRows } from './record-codec.ts';

/** Headers as the file holds them. */
function stored(headers: readonly RecordHeader[]): Buffer {
  const record = { key: null, value: null, headers };
  const bytes = Buffer.alloc(framedBytes(record));
  writeRecord(bytes, 0, record);
  return Buffer.from(itemAt(readFramed(bytes, 0, 1), 0).headers);
}

function read(headers: Uint8Array): LogRecord {
  const row = { offset: 7, timestampMs: 8, key: encodeText('k'), value: encodeText('{}'), headers };
  const after = { ...row, offset: 8, headers: null };
  const [record, next] = readRows(writeRows([row, after]), 2);
  expect(next).toEqual({ ...after, headers: [] });
  return record!;
}

const HEADERS: readonly RecordHeader[] = [
  ['v', encodeText('1')],
  ['type', encodeText('message')],
  ['', new Uint8Array()],
  ['stream', Uint8Array.from([0, 0xff])],
];
const VALID = stored(HEADERS);

describe('headers in the file', () => {
  it('[LOG-FILE-HEADERS] are read as they were written', () => {
    expect(read(VALID).headers).toEqual(HEADERS);
    expect(read(new Uint8Array()).headers).toEqual([]);
  });

  it.each([
    ['one byte', Uint8Array.of(1)],
    ['a name that is longer than all', Uint8Array.of(0xff, 0xff, 0x61)],
    ['a value that is longer than all', Uint8Array.of(0, 1, 0x61, 0xff, 0xff, 0xff, 0xff, 0x62)],
    ['no length of a value', Uint8Array.of(0, 1, 0x61, 0, 0)],
    ['one good header, then one byte', Buffer.concat([VALID, Uint8Array.of(0)])],
    ['text', encodeText('not headers at all, but a text that somebody wrote')],
  ])('[LOG-FILE-HEADERS] that are none (%s) make a record that nobody can read, which keeps them', (_, bytes) => {
    const record = read(bytes);
    expect(record.headers.map(([name, value]) => [name, Buffer.from(value).toString('latin1')])).toEqual([
      ['v', 'damaged headers'],
      ['damaged-headers', Buffer.from(bytes).toString('latin1')],
    ]);
    const unreadable = { unreadable: 'format "damaged headers"; this version reads 1' };
    expect(readEventRecord(record)).toEqual(unreadable);
    expect(readInboundRecord(record)).toEqual(unreadable);
  });

  it(
    '[LOG-FILE-HEADERS] of any bytes are headers or damaged: never an error, and nothing of the next record',
    () => {
      const tried = fuzz('stored headers', mutations([VALID, stored(HEADERS.slice(0, 1))]), (bytes) => {
        const { headers } = read(bytes);
        const isDamaged = headers[1]?.[0] === 'damaged-headers';
        // What was read is all of it, though a name that is no UTF-8 cannot be written back.
        if (isDamaged) expect(Buffer.from(headers[1]![1]).equals(bytes)).toBe(true);
        else if (bytes.toString('utf8') === bytes.toString('latin1')) expect(stored(headers).equals(bytes)).toBe(true);
      });
      expect(tried).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );
});
