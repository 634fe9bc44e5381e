import { describe, expect, it } from 'vitest';
import { deadline, sleep } from './clock.ts';
import { createManualClock } from './manual-clock.ts';

describe('clock', () => {
  it('[LOG-CLOCK-SLEEP] a sleep resolves true when its time is over and not before', async () => {
    const clock = createManualClock();
    let outcome: boolean | null = null;
    void sleep(clock, 100).then((value) => {
      outcome = value;
    });
    await clock.advance(99);
    expect(outcome).toBeNull();
    await clock.advance(1);
    expect(outcome).toBe(true);
    expect(clock.timers()).toBe(0);
  });

  it('[LOG-CLOCK-SLEEP] an abort ends a sleep at once with false and frees its timer', async () => {
    const clock = createManualClock();
    const controller = new AbortController();
    const sleeping = sleep(clock, 100, controller.signal);
    controller.abort();
    expect(await sleeping).toBe(false);
    expect(clock.timers()).toBe(0);
    expect(await sleep(clock, 100, controller.signal)).toBe(false);
    expect(clock.timers()).toBe(0);
  });

  it('[LOG-CLOCK-DEADLINE] a deadline fires with its time or with the outer signal, and tells which', async () => {
    const clock = createManualClock();
    const late = deadline(clock, 50);
    await clock.advance(49);
    expect(late.signal.aborted).toBe(false);
    await clock.advance(1);
    expect([late.signal.aborted, late.expired()]).toEqual([true, true]);

    const outer = new AbortController();
    const cut = deadline(clock, 50, outer.signal);
    outer.abort();
    expect([cut.signal.aborted, cut.expired()]).toEqual([true, false]);
    cut.dispose();

    const unused = deadline(clock, 50);
    unused.dispose();
    await clock.advance(100);
    expect([unused.signal.aborted, unused.expired(), clock.timers()]).toEqual([false, false, 0]);
  });
});
