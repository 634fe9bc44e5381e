import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignSticky, partitionsOf } from './assign-sticky.ts';

const asObject = (assigned: ReadonlyMap<number, string>): Record<number, string> => Object.fromEntries(assigned);

describe('assignSticky', () => {
  it('[LOG-GROUP-STICKY] a member that comes gets what is above the share of the others', () => {
    const current = new Map([
      [0, 'a'],
      [1, 'a'],
      [2, 'a'],
      [3, 'a'],
    ]);
    expect(asObject(assignSticky(['a', 'b'], 4, current))).toEqual({ 0: 'a', 1: 'a', 2: 'b', 3: 'b' });
    expect(asObject(assignSticky(['b'], 4, current))).toEqual({ 0: 'b', 1: 'b', 2: 'b', 3: 'b' });
    expect(asObject(assignSticky([], 4, current))).toEqual({});
  });

  it('[LOG-GROUP-STICKY] loads differ by one at most, every partition has a member, and the moves are the fewest', () => {
    const members = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 });
    const owners = fc.array(fc.option(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'gone')), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(members, owners, (who, current) => {
        const held = new Map(current.flatMap((owner, index) => (owner === null ? [] : [[index, owner] as const])));
        const assigned = assignSticky(who, current.length, held);
        const shares = who.map((member) => partitionsOf(assigned, member).length);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(current.length);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        const kept = [...assigned].filter(([partition, member]) => held.get(partition) === member).length;
        expect(kept).toBe(mostKept(who, current));
        expect(assignSticky([...who].reverse(), current.length, held)).toEqual(assigned);
      }),
    );
  });
});

/** The most partitions that can stay: each member keeps up to the share, and as many as there are larger shares one more. */
function mostKept(members: readonly string[], current: readonly (string | null)[]): number {
  const share = Math.floor(current.length / members.length);
  const counts = members.map((member) => current.filter((owner) => owner === member).length);
  const larger = Math.min(current.length % members.length, counts.filter((count) => count > share).length);
  return counts.reduce((sum, count) => sum + Math.min(count, share), 0) + larger;
}
