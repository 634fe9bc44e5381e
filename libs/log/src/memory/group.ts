/** One membership group in memory: leases on the store's clock, a sticky division, news by the members' own timers. */
import type { Offset, Partition } from '@throughline/protocol';
import { assignSticky, partitionsOf, sameAssignment } from '../assign-sticky.ts';
import type { Clock } from '../clock.ts';

interface Seat {
  readonly clock: Clock;
  readonly onChange: (assigned: readonly Partition[]) => void;
  deadlineMs: number;
  told: readonly Partition[];
  cancelNews: (() => void) | null;
}

export class MemoryGroup {
  private readonly seats = new Map<string, Seat>();
  private assigned = new Map<Partition, string>();
  /** What members committed last. */
  readonly committed = new Map<Partition, Offset>();
  private readonly clock: Clock;
  private readonly partitions: () => number;
  private readonly leaseMs: number;

  constructor(clock: Clock, partitions: () => number, leaseMs: number) {
    this.clock = clock;
    this.partitions = partitions;
    this.leaseMs = leaseMs;
  }

  /** Takes or keeps a seat until the lease runs out; whoever renews expires the others that did not. */
  renew(member: string, clock: Clock, onChange: (assigned: readonly Partition[]) => void): void {
    const now = this.clock.monoMs();
    for (const [other, seat] of this.seats) if (other !== member && seat.deadlineMs <= now) this.drop(other);
    const seat = this.seats.get(member);
    if (seat === undefined)
      this.seats.set(member, { clock, onChange, deadlineMs: now + this.leaseMs, told: [], cancelNews: null });
    else seat.deadlineMs = now + this.leaseMs;
    this.divide();
  }

  leave(member: string): void {
    this.drop(member);
    this.divide();
  }

  assignedTo(member: string): readonly Partition[] {
    return partitionsOf(this.assigned, member);
  }

  members(): string[] {
    return [...this.seats.keys()].sort();
  }

  private drop(member: string): void {
    this.seats.get(member)?.cancelNews?.();
    this.seats.delete(member);
  }

  private divide(): void {
    this.assigned = assignSticky(this.members(), this.partitions(), this.assigned);
    for (const [member, seat] of this.seats) {
      if (seat.cancelNews !== null || sameAssignment(seat.told, this.assignedTo(member))) continue;
      // By the member's own timer: a paused process hears nothing, and no callback runs inside another's call.
      seat.cancelNews = seat.clock.setTimer(0, () => {
        seat.cancelNews = null;
        const assigned = this.assignedTo(member);
        if (this.seats.get(member) !== seat || sameAssignment(seat.told, assigned)) return;
        seat.told = assigned;
        seat.onChange(assigned);
      });
    }
  }
}
