import { encodeText, EVENT_TYPE, formatCheckpoint, makeRecord, readEventRecord } from '@throughline/protocol';
import type { EventRecord, LostRequests } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { allLostSince, foldLost, lostSince } from './lost-requests.ts';

function event(type: string, value: string | null): EventRecord {
  const { key, headers } = makeRecord(type, null, value, { owner: '3' });
  const read = readEventRecord({
    offset: 9,
    timestampMs: 0,
    key,
    value: value === null ? null : encodeText(value),
    headers,
  });
  if ('unreadable' in read) throw new TypeError(read.unreadable);
  return read;
}

const checkpoint = (lost: readonly LostRequests[]): EventRecord =>
  event(EVENT_TYPE.checkpoint, formatCheckpoint({ claims: [3], inbound: 50, from: 50, open: [], lost }));

describe('lost requests', () => {
  it('[REQ-LOST] are what the newest checkpoint says, and nothing else changes them', () => {
    const first = foldLost([], checkpoint([{ from: 10, to: 20, since: 7 }]));
    expect(first).toEqual([{ from: 10, to: 20, since: 7 }]);
    expect(foldLost(first, event(EVENT_TYPE.released, null))).toBe(first);
    expect(foldLost(first, checkpoint([]))).toEqual([]);
  });

  it('[REQ-LOST] a request is lost within the range, its end excluded, since the position that is told', () => {
    const lost = [
      { from: 10, to: 20, since: 7 },
      { from: 30, to: 31, since: 9 },
    ];
    expect([9, 10, 19, 20, 29, 30, 31].map((at) => lostSince(lost, at))).toEqual([null, 7, 7, null, null, 9, null]);
  });

  it('[REQ-LOST] a stream is lost when all that waits on it is, since the last of them is', () => {
    const lost = [
      { from: 10, to: 20, since: 7 },
      { from: 30, to: 31, since: 9 },
    ];
    expect(allLostSince(lost, [10, 30])).toBe(9);
    expect(allLostSince(lost, [30, 10])).toBe(9);
    expect(allLostSince(lost, [10, 21])).toBeNull();
    expect(allLostSince([], [10])).toBeNull();
  });
});
