/** Divides partitions among members. Pure: the same input gives the same answer in every process. SPEC: LOG-GROUP-STICKY. */
import type { Partition } from '@throughline/protocol';

/**
 * Every partition gets one member, loads differ by at most one, and no division with these properties moves fewer
 * partitions away from the living member that has them now.
 */
export function assignSticky(
  members: readonly string[],
  partitions: number,
  current: ReadonlyMap<Partition, string>,
): Map<Partition, string> {
  const assigned = new Map<Partition, string>();
  if (members.length === 0) return assigned;
  const held = new Map<string, Partition[]>(members.map((member) => [member, []]));
  for (let partition = 0; partition < partitions; partition++) {
    const owner = current.get(partition);
    if (owner !== undefined) held.get(owner)?.push(partition);
  }
  // Those who hold most may keep the larger share: that is what makes the moves fewest.
  const order = [...held].sort(([a, left], [b, right]) => right.length - left.length || (a < b ? -1 : 1));
  const share = Math.floor(partitions / members.length);
  const larger = partitions % members.length;
  const wanting: { readonly member: string; count: number }[] = [];
  order.forEach(([member, parts], index) => {
    const quota = index < larger ? share + 1 : share;
    for (const partition of parts.slice(0, quota)) assigned.set(partition, member);
    if (parts.length < quota) wanting.push({ member, count: quota - parts.length });
  });
  for (let partition = 0; partition < partitions; partition++) {
    if (assigned.has(partition)) continue;
    const next = wanting[0];
    if (next === undefined) break;
    assigned.set(partition, next.member);
    next.count--;
    if (next.count === 0) wanting.shift();
  }
  return assigned;
}

/** The partitions of one member, rising. */
export function partitionsOf(assigned: ReadonlyMap<Partition, string>, member: string): Partition[] {
  return [...assigned]
    .filter(([, owner]) => owner === member)
    .map(([partition]) => partition)
    .sort((a, b) => a - b);
}

export function sameAssignment(a: readonly Partition[], b: readonly Partition[]): boolean {
  return a.length === b.length && a.every((partition, index) => partition === b[index]);
}
