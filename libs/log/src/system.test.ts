import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from './system.ts';

const DAY = 86_400_000;

describe('the real clock', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('[LOG-CLOCK-LONG] a timer of more than 24.8 days fires when its time is over, not at once', () => {
    const run = vi.fn();
    systemClock.setTimer(60 * DAY, run);
    vi.advanceTimersByTime(60 * DAY - 1);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('[LOG-CLOCK-LONG] it can be called off in each part of its time, and one without an end never fires', () => {
    const run = vi.fn();
    const stop = systemClock.setTimer(60 * DAY, run);
    vi.advanceTimersByTime(30 * DAY);
    stop();
    const stopEndless = systemClock.setTimer(Number.MAX_VALUE, run);
    vi.advanceTimersByTime(400 * DAY);
    expect(run).not.toHaveBeenCalled();
    stopEndless();
    expect(vi.getTimerCount()).toBe(0);
  });
});
