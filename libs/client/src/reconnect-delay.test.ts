import { describe, expect, it } from 'vitest';
import { reconnectDelay } from './reconnect-delay.ts';

const at = (more: Partial<Parameters<typeof reconnectDelay>[0]>): number =>
  reconnectDelay({ attempt: 0, retryMs: null, initialDelayMs: 500, maxDelayMs: 10_000, unit: 1, ...more });

describe('the wait before the next attempt', () => {
  it.each([
    [{ attempt: 0 }, 500],
    [{ attempt: 0, unit: 0 }, 250],
    [{ attempt: 1 }, 1000],
    [{ attempt: 2, unit: 0.5 }, 1500],
    [{ attempt: 5 }, 10_000],
    [{ attempt: 1e9 }, 10_000],
    // What the server asks for is a floor, with a tenth of jitter above it.
    [{ retryMs: 60, unit: 0 }, 60],
    [{ retryMs: 500, unit: 1 }, 550],
    [{ retryMs: 0, unit: 1 }, 0],
    [{ retryMs: 60, attempt: 1 }, 1000],
    [{ retryMs: 4000, attempt: 1, unit: 0 }, 4000],
    [{ retryAfterMs: 3000, unit: 0 }, 3000],
    [{ retryAfterMs: 3000, retryMs: 100, unit: 0 }, 3000],
    // Nobody keeps a client away for ever.
    [{ retryMs: 1e12, unit: 0 }, 60_000],
  ])('[CLIENT-BACKOFF] %j: %d ms', (options, ms) => {
    expect(at(options)).toBeCloseTo(ms, 6);
  });
});
