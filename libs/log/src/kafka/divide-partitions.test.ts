import { describe, expect, it } from 'vitest';
import { decodeMemberData, dividePartitions, encodeMemberData } from './divide-partitions.ts';
import { decodeAssignment, decodeSubscription, encodeAssignment, encodeSubscription } from './wire/group.ts';

const member = (memberId: string, generation: number, owned: number[]) => ({
  memberId,
  said: { member: memberId, generation, owned },
});

describe('dividePartitions', () => {
  it('[KAFKA-GROUP] each keeps what it has up to its share', () => {
    const divided = dividePartitions([member('a', 3, [0, 1, 2, 3]), member('b', -1, [])], 4);
    expect(Object.fromEntries(divided)).toEqual({ a: [0, 1], b: [2, 3] });
  });

  it('[KAFKA-GROUP] of two who say that they own a partition, the one of the later generation keeps it', () => {
    const divided = dividePartitions([member('old', 2, [0, 1]), member('new', 5, [1, 0]), member('third', 5, [2])], 3);
    expect(divided.get('third')).toEqual([2]);
    expect(divided.get('new')).toEqual([0]);
    expect(divided.get('old')).toEqual([1]);
    const [left, right] = [member('x', 4, [0]), member('y', 4, [0])];
    expect(dividePartitions([left, right], 2)).toEqual(dividePartitions([right, left], 2));
  });

  it('[KAFKA-GROUP] what a member says survives the wire; what is none of it owns nothing', () => {
    const data = { member: 'worker-1', generation: 7, owned: [3, 1] };
    expect(decodeMemberData(decodeSubscription(encodeSubscription('t', encodeMemberData(data))))).toEqual(data);
    const nobody = { member: '', generation: -1, owned: [] };
    for (const text of ['', '{}', 'null', '[]', '{"member":1,"generation":1,"owned":[]}'])
      expect(decodeMemberData(Buffer.from(text))).toEqual(nobody);
    expect(decodeAssignment(encodeAssignment('t', [4, 2]), 't')).toEqual([2, 4]);
    expect(decodeAssignment(encodeAssignment('t', [4, 2]), 'u')).toEqual([]);
    expect(decodeAssignment(Buffer.alloc(0), 't')).toEqual([]);
  });
});
