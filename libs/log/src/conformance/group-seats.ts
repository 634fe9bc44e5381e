/** Members of a group, as the cases see them. */
import type { Partition } from '@throughline/protocol';
import type { Log, Membership } from '../port.ts';

export interface Seat {
  readonly membership: Membership;
  /** What onChange said last. */
  told(): readonly Partition[];
}

export async function take(log: Log, group: string, member: string): Promise<Seat> {
  let told: readonly Partition[] = [];
  const membership = await log.join({
    group,
    member,
    onChange(assigned) {
      told = assigned;
    },
  });
  return { membership, told: () => told };
}

function allOf(log: Log): Partition[] {
  return Array.from({ length: log.description.partitions }, (_, index) => index);
}

/** Each partition with exactly one of the members, and none with two more than another; both views of each member agree. */
export function isDivided(log: Log, seats: readonly Seat[]): boolean {
  const shares = seats.map((seat) => seat.membership.assigned());
  const sizes = shares.map((share) => share.length);
  return (
    shares
      .flat()
      .sort((a, b) => a - b)
      .join() === allOf(log).join() &&
    Math.max(...sizes) - Math.min(...sizes) <= 1 &&
    seats.every((seat) => seat.told().join() === seat.membership.assigned().join())
  );
}
