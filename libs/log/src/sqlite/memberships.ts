/** This process's members: renewed by timers of its own event loop, so that a process that hangs loses its partitions. */
import type { Offset, Partition } from '@throughline/protocol';
import { sameAssignment } from '../assign-sticky.ts';
import { checkCommit } from '../check-append.ts';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import type { JoinOptions, Membership } from '../port.ts';
import type { WorkerLink } from './worker-link.ts';

export interface Memberships {
  join(options: JoinOptions): Promise<Membership>;
  /** News from the worker. */
  onAssigned(group: string, member: string, assigned: readonly Partition[]): void;
  /** Stops renewing; the worker leaves the groups as it closes. */
  stop(): void;
}

export function createMemberships(link: () => WorkerLink, clock: Clock, leaseMs: number): Memberships {
  let isStopped = false;
  const seats = new Map<string, { learn(assigned: readonly Partition[]): void; halt(): void }>();

  const join = async ({ group, member, onChange }: JoinOptions): Promise<Membership> => {
    const key = `${group}\n${member}`;
    if (seats.has(key)) throw new RangeError(`${member} is in ${group} already`);
    let assigned: readonly Partition[] = [];
    let told: readonly Partition[] = [];
    let isHalted = false;
    let cancel = (): void => undefined;
    let renewedMs = clock.monoMs();

    const learn = (now: readonly Partition[]): void => {
      assigned = now;
      // Not inside the handling of messages: what a callback does or throws is its own.
      queueMicrotask(() => {
        if (isHalted || sameAssignment(told, assigned)) return;
        told = assigned;
        onChange(assigned);
      });
    };
    let commits: { readonly offsets: Map<Partition, Offset>; readonly done: Promise<unknown> } | null = null;
    /** What one turn of the event loop commits is one transaction. */
    const commit = (partition: Partition, offset: Offset): Promise<unknown> => {
      if (commits === null) {
        const offsets = new Map<Partition, Offset>();
        const done = Promise.resolve().then(() => {
          commits = null;
          return link().call({ kind: 'commit', group, offsets: [...offsets].flat() });
        });
        commits = { offsets, done };
      }
      commits.offsets.set(partition, offset);
      return commits.done;
    };
    const renew = async (): Promise<void> => {
      const monoMs = clock.monoMs();
      await link().call({ kind: 'renew', group, member, wallMs: clock.wallMs(), monoMs });
      renewedMs = monoMs;
    };
    const schedule = (): void => {
      if (isHalted) return;
      cancel = clock.setTimer(leaseMs / 3, () => {
        // After a stand of this event loop as well the log is asked first: it knows whether others have our partitions.
        renew().then(schedule, () => {
          // They may have; a log that does not answer must not hide that.
          if (clock.monoMs() - renewedMs >= leaseMs) learn([]);
          schedule();
        });
      });
    };
    const halt = (): void => {
      isHalted = true;
      assigned = [];
      cancel();
      seats.delete(key);
    };
    seats.set(key, { learn, halt });
    try {
      await renew();
    } catch (error) {
      halt();
      throw error;
    }
    schedule();
    return {
      member,
      assigned: () => assigned,
      async commit(partition, offset) {
        if (isStopped) throw new LogError('CLOSED', 'the log is closed');
        checkCommit(assigned, partition, offset);
        await commit(partition, offset);
      },
      async leave() {
        if (isHalted) return;
        halt();
        await link().call({ kind: 'leave', group, member });
      },
    };
  };
  return {
    join,
    onAssigned(group, member, assigned) {
      seats.get(`${group}\n${member}`)?.learn(assigned);
    },
    stop() {
      isStopped = true;
      for (const seat of [...seats.values()]) seat.halt();
    },
  };
}
