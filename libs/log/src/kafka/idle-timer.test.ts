import { createRequire } from 'node:module';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { correctIdleTimer } from './idle-timer.ts';

const require = createRequire(import.meta.url);
const FILE = require.resolve('kafkajs/src/network/requestQueue');

interface Queue {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: unknown;
  checkPendingRequests(): void;
  destroy(): void;
}
type QueueClass = new (options: object) => Queue;

/** As kafkajs ships it, whatever was corrected in this process before. */
function loadUncorrected(): QueueClass {
  const kept = require.cache[FILE];
  try {
    Reflect.deleteProperty(require.cache, FILE);
    return require(FILE) as QueueClass;
  } finally {
    require.cache[FILE] = kept;
  }
}

const options = { maxInFlightRequests: 1, logger: { debug: () => undefined } };

describe('the timer of an idle connection', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('[KAFKA-IDLE] kafkajs as it is shipped wakes for nothing; if this fails, the correction is needless: remove it', () => {
    const Uncorrected = loadUncorrected();
    const queue = new Uncorrected(options);
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).not.toBeNull();
    queue.destroy();
  });

  it('[KAFKA-IDLE] corrected, a connection sets no timer while nothing waits, and still one while something does or the broker throttles', () => {
    vi.useFakeTimers();
    correctIdleTimer();
    correctIdleTimer();
    const Corrected = require(FILE) as QueueClass;
    const queue = new Corrected(options);
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).toBeNull();
    queue.throttledUntil = Date.now() + 500;
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).not.toBeNull();
    vi.advanceTimersByTime(600);
    expect(queue.throttleCheckTimeoutId).toBeNull();
    expect(vi.getTimerCount()).toBe(0);
  });
});
