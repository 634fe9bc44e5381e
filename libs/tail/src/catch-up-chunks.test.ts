import { requestStream } from '@throughline/protocol';
import { eventAt, placed, sent } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { CatchUpChunk, CatchUpChunks } from './catch-up-chunks.ts';

const record = (offset: number, key = 'k', bytes = 10) =>
  eventAt(sent(key, requestStream(1), 'x'.repeat(bytes)), offset).record;

const chunk = (from: number, next: number, bytes = 10): CatchUpChunk =>
  new CatchUpChunk(
    from,
    next,
    Array.from({ length: next - from }, (_, index) => record(from + index, 'k', bytes)),
  );

describe('a chunk', () => {
  const held = new CatchUpChunk(10, 20, [
    record(11),
    record(12, 'other'),
    placed({ key: null, value: null, headers: [] }, 14),
    record(17),
  ]);

  it('[TAIL-CHUNKS] gives the first record at or after a place across holes, whoever it belongs to', () => {
    const found = [10, 11, 12, 13, 15, 18].map((position) => held.firstAt(position)?.offset);
    expect(found).toEqual([11, 11, 12, 14, 17, undefined]);
  });

  it('[TAIL-CHUNKS] gives the records of one session at or after a place', () => {
    const offsets = (key: string, position: number) => held.eventsOf(key, position).map(({ event }) => event.offset);
    expect([offsets('k', 10), offsets('k', 12), offsets('k', 18)]).toEqual([[11, 17], [17], []]);
    expect([offsets('other', 10), offsets('nobody', 10)]).toEqual([[12], []]);
  });
});

describe('chunks', () => {
  it('[TAIL-CHUNKS] a chunk serves every place from its start up to its end', () => {
    const chunks = new CatchUpChunks(1_000_000);
    const [low, high] = [chunk(10, 20), chunk(30, 40)];
    chunks.add(low);
    chunks.add(high);
    expect([9, 10, 19, 20, 29, 30, 39, 40].map((position) => chunks.find(position))).toEqual([
      ...[null, low, low, null],
      ...[null, high, high, null],
    ]);
  });

  it('[TAIL-CHUNKS] beyond its bytes the one used longest ago goes, and one that is larger is not kept', () => {
    const one = chunk(0, 10).bytes();
    const chunks = new CatchUpChunks(3 * one);
    for (const from of [0, 10, 20]) chunks.add(chunk(from, from + 10));
    expect(chunks.find(5)?.from).toBe(0);
    chunks.add(chunk(30, 40));
    expect([0, 10, 20, 30].map((position) => chunks.find(position)?.from)).toEqual([0, undefined, 20, 30]);
    expect(chunks.bytes()).toBe(3 * one);
    chunks.add(chunk(50, 60, 10_000));
    expect(chunks.find(50)).toBeNull();
    expect(chunks.bytes()).toBeLessThanOrEqual(3 * one);
  });

  it('[TAIL-CHUNKS] an empty chunk serves nothing', () => {
    const chunks = new CatchUpChunks(1000);
    chunks.add(new CatchUpChunk(5, 5, []));
    expect(chunks.find(5)).toBeNull();
    expect(chunks.bytes()).toBe(0);
  });
});
