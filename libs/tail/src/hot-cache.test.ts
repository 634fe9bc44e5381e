import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { anchorChecksum, requestStream } from '@throughline/protocol';
import { eventAt, placed, sent } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { HotCache, TailEvent } from './hot-cache.ts';

const message = (offset: number, key = 'k', bytes = 10) =>
  eventAt(sent(key, requestStream(1), 'x'.repeat(bytes)), offset);

function add(cache: HotCache, offset: number, key = 'k', bytes = 10): void {
  const event = message(offset, key, bytes);
  cache.add(event.record, new TailEvent(event));
}

const offsets = (cache: HotCache, key: string, from: number, limit = 100) =>
  cache.eventsOf(key, from, limit).map(({ event }) => event.offset);

describe('hot cache', () => {
  it('[TAIL-CACHE] it holds everything from its start on, by session and position', () => {
    const cache = new HotCache(1_000_000, 5);
    expect(cache.start()).toBe(5);
    add(cache, 5);
    add(cache, 7, 'other');
    add(cache, 8);
    cache.add(placed({ key: null, value: null, headers: [] }, 10), null);
    expect(cache.start()).toBe(5);
    expect(offsets(cache, 'k', 0)).toEqual([5, 8]);
    expect(offsets(cache, 'k', 6)).toEqual([8]);
    expect(offsets(cache, 'k', 8)).toEqual([8]);
    expect(offsets(cache, 'k', 9)).toEqual([]);
    expect(offsets(cache, 'other', 0)).toEqual([7]);
    expect(offsets(cache, 'nobody', 0)).toEqual([]);
    expect(offsets(cache, 'k', 0, 1)).toEqual([5]);
  });

  it('[TAIL-CACHE] the first record at or after a place is found across holes, whoever it belongs to', () => {
    const cache = new HotCache(1_000_000, 0);
    add(cache, 2);
    cache.add(placed({ key: null, value: null, headers: [] }, 5), null);
    expect([0, 2, 3, 5, 6].map((position) => cache.firstAt(position)?.offset ?? null)).toEqual([2, 2, 5, 5, null]);
  });

  it('[TAIL-CACHE] beyond its bytes the oldest go, and its start follows them', () => {
    const cache = new HotCache(3000, 0);
    for (let offset = 0; offset < 50; offset++) {
      add(cache, offset, offset % 2 === 0 ? 'even' : 'odd', 200);
      expect(cache.bytes()).toBeLessThanOrEqual(3000);
      const held = [...offsets(cache, 'even', 0), ...offsets(cache, 'odd', 0)].sort((a, b) => a - b);
      expect(held).toEqual(Array.from({ length: offset - cache.start() + 1 }, (_, index) => cache.start() + index));
    }
    expect(cache.start()).toBeGreaterThan(40);
    expect(cache.firstAt(cache.start())?.offset).toBe(cache.start());
  });

  it('[TAIL-CACHE] a record larger than the cache is held alone', () => {
    const cache = new HotCache(1000, 0);
    add(cache, 0);
    add(cache, 1, 'k', 5000);
    expect(offsets(cache, 'k', 0)).toEqual([1]);
    expect(cache.start()).toBe(1);
    add(cache, 2);
    expect(offsets(cache, 'k', 0)).toEqual([2]);
  });

  it('[TAIL-CACHE] what is returned at once is bounded in bytes as well, by no more than the last event', () => {
    const cache = new HotCache(10_000_000, 0);
    for (let offset = 0; offset < 20; offset++) add(cache, offset, 'k', 1000);
    expect(cache.eventsOf('k', 0, 100, 5000).length).toBeLessThan(5);
    expect(cache.eventsOf('k', 0, 100, 1)).toHaveLength(1);
    expect(cache.eventsOf('k', 18, 100, 5000)).toHaveLength(2);
  });

  it('[TAIL-CACHE] keys and headers count as well as values', () => {
    const cache = new HotCache(1_000_000, 0);
    const empty = placed({ key: null, value: null, headers: [] }, 0);
    cache.add(empty, null);
    const overhead = cache.bytes();
    const bytes = (count: number): Uint8Array => new Uint8Array(count);
    cache.add({ ...empty, offset: 1, key: bytes(100), value: bytes(1000), headers: [['name', bytes(10_000)]] }, null);
    expect(cache.bytes()).toBe(2 * overhead + 100 + 1000 + 10_000 + 4);
  });

  it('[TAIL-CACHE] evicted records, and sessions without any, are let go at once', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const cache = new HotCache(10_000, 0);
    const evicted = ((): WeakRef<object> => {
      const event = message(0, 'first');
      cache.add(event.record, new TailEvent(event));
      return new WeakRef(event.record);
    })();
    expect(cache.sessions()).toBe(1);
    for (let offset = 1; offset < 30; offset++) add(cache, offset, `k${offset}`, 2000);
    expect(cache.start()).toBe(26);
    expect(cache.sessions()).toBe(4);
    // A weak reference is held until the current turn ends.
    await new Promise((resolve) => setImmediate(resolve));
    gc();
    expect(evicted.deref()).toBeUndefined();
  });

  it('[TAIL-CACHE] forgotten all, it begins anew at the place given', () => {
    const cache = new HotCache(1_000_000, 0);
    add(cache, 0);
    cache.reset(40);
    expect([cache.start(), cache.bytes(), cache.firstAt(40), offsets(cache, 'k', 0)]).toEqual([40, 0, null, []]);
    add(cache, 41);
    expect(offsets(cache, 'k', 40)).toEqual([41]);
  });

  it('[TAIL-CACHE] the checksum of an event is that of its record', () => {
    const event = message(3);
    const tailEvent = new TailEvent(event);
    expect(tailEvent.checksum()).toBe(anchorChecksum(event.record));
    expect(tailEvent.checksum()).toBe(anchorChecksum(event.record));
  });
});
