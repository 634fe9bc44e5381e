import { describe, expect, it } from 'vitest';
import { reconnectDelay } from './reconnect-delay.ts';

const policy = { initialMs: 500, maxMs: 30_000 };

describe('reconnectDelay', () => {
  it('[HOST-UPSTREAM-RETRY] never undercuts the time that the server named', () => {
    expect(reconnectDelay(policy, 2000, 0, 0)).toBe(2000);
    expect(reconnectDelay(policy, 2000, 0, 0.99)).toBeGreaterThanOrEqual(2000);
    expect(reconnectDelay(policy, 2000, 9, 0)).toBe(30_000);
  });

  it('[HOST-UPSTREAM-RETRY] doubles from half a second up to 30 s without such a time', () => {
    expect([0, 1, 2, 5, 6, 50].map((failures) => reconnectDelay(policy, undefined, failures, 0))).toEqual([
      500, 1000, 2000, 16_000, 30_000, 30_000,
    ]);
  });

  it('[HOST-UPSTREAM-RETRY] does not spin on retry: 0, nor sleep for a day', () => {
    expect(reconnectDelay(policy, 0, 0, 0)).toBe(50);
    expect(reconnectDelay(policy, 86_400_000, 0, 0)).toBe(300_000);
  });
});
