import { describe, expect, it } from 'vitest';
import { isPingId, parseWireRequestId, pingId, wireRequestId } from './server-request-ids.ts';

describe('ids of requests from the server', () => {
  it.each([
    [7, 1, 3, 'tl-7-1-n:3'],
    [7, 2, '3', 'tl-7-2-s:3'],
    [0, 1, -1.5, 'tl-0-1-n:-1.5'],
    [104857600, 12, 'a:b\nc-d', 'tl-104857600-12-s:a:b\nc-d'],
    [1, 1, '', 'tl-1-1-s:'],
  ])('[WRK-NAMESPACE] claim %s, instance %s, id %j is %j, and is read back', (claim, instance, id, text) => {
    expect(wireRequestId(claim, instance, id)).toBe(text);
    expect(parseWireRequestId(text)).toEqual({ claim, instance, id });
  });

  it.each([null, 7, '', 'tl-', 'tl-1-1-n:', 'tl-1-1-n:x', 'tl-01-1-n:1', 'tl-1--1-n:1', 'x-1-1-n:1', 'tl-1-1-z:1'])(
    '[WRK-NAMESPACE] %j is none',
    (id) => {
      expect(parseWireRequestId(id)).toBeNull();
    },
  );

  it('[WRK-PING] the id of a ping is that of no server request', () => {
    expect(pingId(7, 1)).toBe('tl-7-ping-1');
    expect([isPingId('tl-7-ping-1'), isPingId('tl-9-ping-12')]).toEqual([true, true]);
    expect([isPingId('tl-7-1-s:ping-1'), isPingId(1), isPingId(null), isPingId('ping')]).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(parseWireRequestId(pingId(7, 1))).toBeNull();
  });
});
