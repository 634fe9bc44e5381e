import { zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { crc32c } from './crc32c.ts';
import { BATCH_OVERHEAD, decodeBatches, encodeBatch, framedBytes } from './record-batch.ts';

const STAMP = { producerId: 9n, producerEpoch: 0, firstSequence: 0, timestampMs: 1_700_000_000_000 };
const text = (value: string): RecordInput => ({ key: encodeText('k'), value: encodeText(value), headers: [] });
const valuesOf = (records: readonly { value: Uint8Array | null }[]): string[] =>
  records.map(({ value }) => new TextDecoder().decode(value ?? new Uint8Array(0)));

/** A batch as it stands in the log at `offset`. */
function at(offset: number, batch: Buffer, change?: (batch: Buffer) => void): Buffer {
  const placed = Buffer.from(batch);
  placed.writeBigInt64BE(BigInt(offset), 0);
  change?.(placed);
  return placed;
}
const setAttributes = (attributes: number) => (batch: Buffer) => {
  batch.writeInt16BE(attributes, 21);
};
/** What compaction leaves of a batch whose records are all superseded. */
function emptyBatch(offset: number, count: number): Buffer {
  const batch = Buffer.from(encodeBatch([text('x')], STAMP).subarray(0, BATCH_OVERHEAD));
  batch.writeBigInt64BE(BigInt(offset), 0);
  batch.writeInt32BE(BATCH_OVERHEAD - 12, 8);
  batch.writeInt32BE(count - 1, 23);
  batch.writeInt32BE(0, 57);
  return batch;
}

describe('record batches', () => {
  it('[KAFKA-BATCH] the checksum is CRC-32C', () => {
    expect(crc32c(Buffer.from('123456789')) >>> 0).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32)) >>> 0).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(0))).toBe(0);
  });

  it('[KAFKA-BATCH] any records are read as they were written, headers in their order and with their repeats', () => {
    const bytes = fc.uint8Array({ maxLength: 300 });
    const record = fc.record({
      key: fc.option(bytes),
      value: fc.option(bytes),
      headers: fc.array(fc.tuple(fc.string({ maxLength: 8, unit: 'grapheme' }), bytes), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 90 }), fc.nat({ max: 2 ** 40 }), (records, offset) => {
        const batch = encodeBatch(records, STAMP);
        expect(batch.length).toBeLessThanOrEqual(
          records.reduce((sum, each) => sum + framedBytes(each), BATCH_OVERHEAD),
        );
        const read = decodeBatches(at(offset, batch), offset, 1e9);
        expect(read.next).toBe(offset + records.length);
        expect(read.records).toEqual(
          records.map((each, index) => ({ offset: offset + index, timestampMs: STAMP.timestampMs, ...each })),
        );
      }),
    );
  });

  it('[KAFKA-BATCH] records below the asked offset are dropped, a batch that is cut off is left, and bytes bound what is read', () => {
    const first = at(10, encodeBatch(['a', 'b', 'c'].map(text), STAMP));
    const second = at(13, encodeBatch(['d', 'e'].map(text), STAMP));
    const both = Buffer.concat([first, second]);
    expect(valuesOf(decodeBatches(both, 12, 1e6).records)).toEqual(['c', 'd', 'e']);
    const cut = decodeBatches(both.subarray(0, both.length - 1), 11, 1e6);
    expect([valuesOf(cut.records), cut.next]).toEqual([['b', 'c'], 13]);
    const bounded = decodeBatches(both, 11, 4);
    expect([valuesOf(bounded.records), bounded.next]).toEqual([['b', 'c'], 13]);
    const one = decodeBatches(both, 11, 0);
    expect([valuesOf(one.records), one.next]).toEqual([['b'], 12]);
    expect(decodeBatches(first.subarray(0, 40), 10, 1e6)).toEqual({ records: [], next: 10 });
  });

  it('[KAFKA-BATCH] control records and what compaction left empty move the position and give nothing', () => {
    const batches = Buffer.concat([
      at(10, encodeBatch([text('marker')], STAMP), setAttributes(0x30)),
      emptyBatch(11, 9),
      at(20, encodeBatch([text('a')], STAMP)),
      emptyBatch(21, 4),
    ]);
    const read = decodeBatches(batches, 10, 1e6);
    expect([valuesOf(read.records), read.next]).toEqual([['a'], 25]);
    expect(decodeBatches(emptyBatch(11, 9), 15, 1e6)).toEqual({ records: [], next: 20 });
  });

  it('[KAFKA-BATCH] a time that the log gave counts for all records of the batch', () => {
    const logged = at(0, encodeBatch(['a', 'b'].map(text), STAMP), (batch) => {
      setAttributes(0x08)(batch);
      batch.writeBigInt64BE(1_800_000_000_000n, 35);
    });
    expect(decodeBatches(logged, 0, 1e6).records.map(({ timestampMs }) => timestampMs)).toEqual([1.8e12, 1.8e12]);
  });

  it('[KAFKA-CODEC] zstd is read; what cannot be read is told, with the way out', () => {
    const plain = encodeBatch(['a', 'b'].map(text), STAMP);
    const packed = Buffer.concat([plain.subarray(0, BATCH_OVERHEAD), zstdCompressSync(plain.subarray(BATCH_OVERHEAD))]);
    packed.writeInt32BE(packed.length - 12, 8);
    setAttributes(4)(packed);
    expect(valuesOf(decodeBatches(packed, 0, 1e6).records)).toEqual(['a', 'b']);
    for (const codec of [2, 3])
      expect(() => decodeBatches(at(0, plain, setAttributes(codec)), 0, 1e6)).toThrow(/compression\.type=uncompressed/);
  });
});
