/** What the leader of a group decides: pure, from what the members said when they joined. */
import type { Partition } from '@throughline/protocol';
import { assignSticky, partitionsOf } from '../assign-sticky.ts';

export interface GroupMember {
  /** Given by the broker. */
  readonly memberId: string;
  readonly said: MemberData;
}

/** Travels as JSON in the member's subscription. */
export interface MemberData {
  readonly member: string;
  /** Of its last assignment; −1 before the first. */
  readonly generation: number;
  readonly owned: readonly Partition[];
}

export function encodeMemberData(data: MemberData): Buffer {
  return Buffer.from(JSON.stringify(data));
}

/** What cannot be read owns nothing. */
export function decodeMemberData(bytes: Uint8Array): MemberData {
  try {
    const { member, generation, owned } = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<MemberData>;
    if (typeof member === 'string' && typeof generation === 'number' && Array.isArray(owned))
      return { member, generation, owned: owned.filter((partition) => Number.isInteger(partition)) };
  } catch {
    // Falls through.
  }
  return { member: '', generation: -1, owned: [] };
}

/** Of two who say that they own a partition, the one of the later generation does; a member left behind may say so for long. */
export function dividePartitions(members: readonly GroupMember[], partitions: number): Map<string, Partition[]> {
  const owners = new Map<Partition, GroupMember>();
  for (const member of members)
    for (const partition of member.said.owned) {
      const other = owners.get(partition);
      if (other === undefined || isLater(member, other)) owners.set(partition, member);
    }
  const assigned = assignSticky(
    members.map(({ memberId }) => memberId),
    partitions,
    new Map([...owners].map(([partition, { memberId }]) => [partition, memberId])),
  );
  return new Map(members.map(({ memberId }) => [memberId, partitionsOf(assigned, memberId)]));
}

function isLater(a: GroupMember, b: GroupMember): boolean {
  return a.said.generation === b.said.generation ? a.memberId < b.memberId : a.said.generation > b.said.generation;
}
