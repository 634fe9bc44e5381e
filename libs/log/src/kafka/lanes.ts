/**
 * Connections in use by one purpose. A connection answers in order, so a long poll or a stalled append holds up all
 * that comes behind it: each has a lane to itself while it lasts. Lanes are made as needed, used again, and closed
 * when idle.
 */
import type { Clock } from '../clock.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { KafkaFailure } from './kafka-failure.ts';

export interface Lane {
  /** The connection of this lane to a broker; one to another broker is given up. */
  to(address: Address): BrokerConnection;
  isAt(address: Address): boolean;
}

export interface LanePool<L extends Lane> {
  /** A lane, if possible one that is connected to `address`; waits while so many as `most` says are in use. The caller gives it back, or throws it away. */
  take(address: Address): Promise<L>;
  giveBack(lane: L): void;
  discard(lane: L): void;
  /** Lanes that exist, in use or not. */
  size(): number;
  /** Destroys every lane, also those in use. */
  close(): void;
}

/** Long before brokers forget a producer or close an idle connection (10 min). */
const IDLE_MS = 60_000;

export function createLanePool<L extends Lane>(
  clock: Clock,
  most: () => number,
  make: () => { readonly lane: L; destroy(): void },
): LanePool<L> {
  const lanes = new Map<L, () => void>();
  const idle: { readonly lane: L; readonly sinceMs: number }[] = [];
  const waiting: (() => void)[] = [];
  let isClosed = false;
  let cancelSweep: (() => void) | null = null;

  const discard = (lane: L): void => {
    lanes.get(lane)?.();
    lanes.delete(lane);
    waiting.shift()?.();
  };
  const sweep = (): void => {
    cancelSweep = null;
    // The oldest are first: the newest is used again first.
    while (idle[0] !== undefined && clock.monoMs() - idle[0].sinceMs >= IDLE_MS) {
      const oldest = idle.shift();
      if (oldest !== undefined) discard(oldest.lane);
    }
    if (idle.length > 0 && !isClosed) cancelSweep = clock.setTimer(IDLE_MS, sweep);
  };

  return {
    async take(address) {
      for (;;) {
        if (isClosed) throw new KafkaFailure('closed', 'the log is closed');
        const near = idle.findLastIndex(({ lane }) => lane.isAt(address));
        const [used] = near >= 0 ? idle.splice(near, 1) : lanes.size < most() ? [] : idle.splice(-1);
        if (used !== undefined) return used.lane;
        if (lanes.size < most()) {
          const { lane, destroy } = make();
          lanes.set(lane, destroy);
          return lane;
        }
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
        });
      }
    },
    giveBack(lane) {
      if (isClosed || !lanes.has(lane)) return;
      idle.push({ lane, sinceMs: clock.monoMs() });
      cancelSweep ??= clock.setTimer(IDLE_MS, sweep);
      waiting.shift()?.();
    },
    discard,
    size: () => lanes.size,
    close() {
      isClosed = true;
      cancelSweep?.();
      for (const destroy of lanes.values()) destroy();
      lanes.clear();
      idle.length = 0;
      for (const wake of waiting.splice(0)) wake();
    },
  };
}

/** A lane that is nothing but its connection. */
export function makeLane(open: (address: Address) => BrokerConnection): { readonly lane: Lane; destroy(): void } {
  let connection: BrokerConnection | null = null;
  let isDestroyed = false;
  return {
    lane: {
      to(address) {
        if (isDestroyed) throw new KafkaFailure('closed', 'the lane is closed');
        if (connection?.address.host !== address.host || connection.address.port !== address.port) {
          connection?.destroy();
          connection = open(address);
        }
        return connection;
      },
      isAt: (address) => connection?.address.host === address.host && connection.address.port === address.port,
    },
    destroy() {
      isDestroyed = true;
      connection?.destroy();
    },
  };
}
