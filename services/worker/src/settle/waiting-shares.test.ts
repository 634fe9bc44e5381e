import { describe, expect, it } from 'vitest';
import { isHeldUp, WaitingShares } from './waiting-shares.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** The same alone: one session of one principal. */
const alone = (bytes: number): boolean =>
  isHeldUp({ session: bytes, principal: { bytes, sessions: 1 }, total: { bytes, principals: 1 } });

describe('what waits for the log', () => {
  it('[WRK-FAIR] a principal may have 128 KiB of it', () => {
    expect([alone(128 * KIB), alone(128 * KIB + 1)]).toEqual([false, true]);
  });

  it.each([
    { of: 'a session with more than its part of a full share', session: 33, bytes: 129, sessions: 4, held: true },
    { of: 'a session with no more than its part of a full share', session: 32, bytes: 129, sessions: 4, held: false },
    { of: 'whoever it is, while there is room in the share', session: 120, bytes: 128, sessions: 4, held: false },
    { of: 'one of many sessions with no more than 4 KiB', session: 4, bytes: 2000, sessions: 500, held: false },
    { of: 'one of many sessions with more', session: 5, bytes: 2000, sessions: 500, held: true },
    { of: 'a session with nothing waiting', session: 0, bytes: 9000, sessions: 4, held: false },
  ])('[WRK-FAIR] $of: held up, $held', ({ session, bytes, sessions, held }) => {
    const principal = { bytes: bytes * KIB, sessions };
    expect(isHeldUp({ session: session * KIB, principal, total: { bytes: bytes * KIB, principals: 1 } })).toBe(held);
  });

  it('[WRK-FAIR] what others have waiting holds nobody up until it is 4 MiB, and then only those with more than an equal part', () => {
    const held = (bytes: number, totalBytes: number): boolean =>
      isHeldUp({ session: bytes, principal: { bytes, sessions: 1 }, total: { bytes: totalBytes, principals: 64 } });
    expect([held(100 * KIB, 4 * MIB), held(100 * KIB, 4 * MIB + 1)]).toEqual([false, true]);
    expect([held(64 * KIB, 40 * MIB), held(64 * KIB + 1, 40 * MIB)]).toEqual([false, true]);
    // The share of few is not more than it was.
    expect(
      isHeldUp({
        session: 129 * KIB,
        principal: { bytes: 129 * KIB, sessions: 1 },
        total: { bytes: 40 * MIB, principals: 2 },
      }),
    ).toBe(true);
  });

  it('[WRK-FAIR] those who are held up go on when their own is in the log, whatever others have waiting', async () => {
    const shares = new WaitingShares();
    const went: string[] = [];
    const wait = (session: string): void => void shares.room(session).then(() => went.push(session));
    shares.add('greedy 1', 'greedy', 100 * KIB);
    shares.add('greedy 2', 'greedy', 100 * KIB);
    shares.add('modest', 'modest', KIB);
    for (const session of ['greedy 1', 'greedy 2', 'modest']) wait(session);
    await Promise.resolve();
    expect(went).toEqual(['modest']);
    shares.take('greedy 2', 100 * KIB);
    shares.wake();
    await Promise.resolve();
    expect(went).toEqual(['modest', 'greedy 1', 'greedy 2']);
  });

  it('[WRK-FAIR] nothing is remembered of those of whom nothing waits', async () => {
    const shares = new WaitingShares();
    shares.add('s', 'p', 200 * KIB);
    shares.take('s', 200 * KIB);
    shares.take('s', 200 * KIB);
    shares.add('t', 'p', 100 * KIB);
    shares.add('u', 'q', 100 * KIB);
    expect(['s', 't', 'u'].map((session) => shares.of(session))).toEqual([0, 100 * KIB, 100 * KIB]);
    await Promise.all(['s', 't', 'u'].map((session) => shares.room(session)));
  });
});
