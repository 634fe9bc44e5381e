/** A membership of the group that can be made to believe that it has a partition more, or less, than the group says. */
import type { JoinOptions, Log, Membership } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import type { SimProcess } from './sim-process.ts';

export interface Distortion {
  readonly add?: Partition;
  readonly remove?: Partition;
}

export interface DistortableMembership {
  /** What the group says. */
  assigned(): readonly Partition[];
  /** `null`: back to what the group says. The process hears of it as of any other change. */
  distort(distortion: Distortion | null): void;
}

export async function joinDistorted(
  log: Log,
  options: JoinOptions,
  process: SimProcess,
): Promise<{ readonly membership: Membership; readonly distortable: DistortableMembership }> {
  let given: readonly Partition[] = [];
  let told: readonly Partition[] = [];
  let distortion: Distortion | null = null;
  let hasLeft = false;
  const tell = (): void => {
    const { add, remove } = distortion ?? {};
    const believed = new Set(given.filter((partition) => partition !== remove));
    if (add !== undefined) believed.add(add);
    const now = [...believed].sort((a, b) => a - b);
    if (hasLeft || (now.length === told.length && now.every((partition, index) => partition === told[index]))) return;
    told = now;
    options.onChange(now);
  };
  const membership = await log.join({
    ...options,
    onChange(assigned) {
      given = assigned;
      process.hears('membership', tell);
    },
  });
  return {
    membership: {
      member: membership.member,
      assigned: () => told,
      commit: (partition, offset) => membership.commit(partition, offset),
      leave() {
        hasLeft = true;
        told = [];
        return membership.leave();
      },
    },
    distortable: {
      assigned: () => given,
      distort(next) {
        distortion = next;
        process.clock.setTimer(0, () => {
          process.hears('membership', tell);
        });
      },
    },
  };
}
