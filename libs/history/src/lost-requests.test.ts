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
  it('[REQ-LOST] are what the newest checkpoint says, and nothing but a checkpoint changes them', () => {
    const first = foldLost([], checkpoint([{ from: 10, to: 20, since: 7 }]));
    expect(first).toEqual([{ from: 10, to: 20, since: 7 }]);
    expect(foldLost(first, event(EVENT_TYPE.released, null))).toBe(first);
  });

  it('[REQ-LOST] stay known where they were read, though a newer checkpoint no longer says them, unless it says more', () => {
    const first = foldLost([], checkpoint([{ from: 10, to: 20, since: 7 }]));
    expect(foldLost(first, checkpoint([]))).toEqual([{ from: 10, to: 20, since: 7 }]);
    expect(foldLost(first, checkpoint([{ from: 15, to: 30, since: 9 }]))).toEqual([
      { from: 10, to: 20, since: 7 },
      { from: 15, to: 30, since: 9 },
    ]);
    expect(foldLost(first, checkpoint([{ from: 5, to: 20, since: 9 }]))).toEqual([{ from: 5, to: 20, since: 9 }]);
  });

  it('[REQ-LOST] are kept in bounds: of what newer checkpoints no longer say the newest 256 ranges', () => {
    let lost = foldLost([], checkpoint([]));
    for (let at = 0; at < 1000; at++) lost = foldLost(lost, checkpoint([{ from: at * 2, to: at * 2 + 1, since: at }]));
    expect(lost.length).toBe(257);
    expect(lost.at(0)).toEqual({ from: 1486, to: 1487, since: 743 });
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
