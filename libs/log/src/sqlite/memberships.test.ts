import { describe, expect, it } from 'vitest';
import type { Partition } from '@throughline/protocol';
import { LogError } from '../errors.ts';
import { createManualClock } from '../manual-clock.ts';
import { createMemberships } from './memberships.ts';
import type { WorkerLink } from './worker-link.ts';

const LEASE_MS = 3000;

/** A member of which the file says that it has 0 and 1; `answers` decides what becomes of each renewal. */
async function seat(answers: () => Promise<void>) {
  const manual = createManualClock();
  let stoodMs = 0;
  const clock = { ...manual, monoMs: () => manual.monoMs() + stoodMs };
  const told: (readonly Partition[])[] = [];
  const link = {
    async call() {
      await answers();
      memberships.onAssigned('workers', 'a', [0, 1]);
      return { kind: 'done', id: 1 };
    },
  } as unknown as WorkerLink;
  const memberships = createMemberships(() => link, clock, LEASE_MS);
  const membership = await memberships.join({ group: 'workers', member: 'a', onChange: (now) => told.push(now) });
  await manual.advance(0);
  return {
    membership,
    told,
    advance: manual.advance,
    /** Time goes on, and no timer runs. */
    stand(ms: number): void {
      stoodMs += ms;
    },
    stop: memberships.stop,
  };
}

describe('a member of a group in a file', () => {
  it('[LOG-GROUP-STOOD] keeps its partitions when its event loop stood for many leases and nobody took them', async () => {
    const { membership, told, advance, stand, stop } = await seat(() => Promise.resolve());
    stand(10 * LEASE_MS);
    await advance(LEASE_MS);
    expect(membership.assigned()).toEqual([0, 1]);
    expect(told).toEqual([[0, 1]]);
    stop();
  });

  it('[LOG-GROUP-LEASE] counts as without partitions when the log has answered no renewal for a lease', async () => {
    let isDown = false;
    const { membership, told, advance, stop } = await seat(() =>
      isDown ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'down')) : Promise.resolve(),
    );
    isDown = true;
    await advance(LEASE_MS - 1);
    expect(membership.assigned()).toEqual([0, 1]);
    await advance(LEASE_MS);
    expect(told).toEqual([[0, 1], []]);
    isDown = false;
    await advance(LEASE_MS);
    expect(membership.assigned()).toEqual([0, 1]);
    stop();
  });
});
