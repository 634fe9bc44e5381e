import { describe, expect, it } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import { createCourtesy } from './courtesy.ts';
import { KafkaFailure } from './kafka-failure.ts';

const A = { host: 'a', port: 1 };
const B = { host: 'b', port: 1 };
const [PRODUCE, FETCH, HEARTBEAT, METADATA] = [0, 1, 12, 3];

describe('courtesy', () => {
  it('[KAFKA-QUOTA] a wait holds for one broker and one kind of request, as long as it was asked for and never above a minute', async () => {
    const clock = createManualClock();
    const courtesy = createCourtesy(clock);
    courtesy.noteThrottle(A, PRODUCE, 2000);
    expect(courtesy.throttledMs(A, PRODUCE)).toBe(2000);
    expect(courtesy.appendThrottledMs(A)).toBe(2000);
    for (const [address, apiKey] of [
      [B, PRODUCE],
      [A, FETCH],
      [A, METADATA],
    ] as const)
      expect(courtesy.throttledMs(address, apiKey)).toBe(0);
    courtesy.noteThrottle(A, PRODUCE, 500);
    await clock.advance(1500);
    expect(courtesy.throttledMs(A, PRODUCE)).toBe(500);
    await clock.advance(501);
    expect(courtesy.throttledMs(A, PRODUCE)).toBe(0);
    courtesy.noteThrottle(A, METADATA, 2 ** 31 - 1);
    expect(courtesy.throttledMs(A, HEARTBEAT)).toBe(60_000);
  });

  it('[KAFKA-LOGIN] refused credentials are shown again after 1, 2, 4, 8 and then every 10 s; what fails at the same time counts once', async () => {
    const clock = createManualClock();
    const courtesy = createCourtesy(clock);
    const failure = new KafkaFailure('authentication', 'no');
    for (const pauseMs of [1000, 2000, 4000, 8000, 10_000, 10_000]) {
      expect(courtesy.refusal()).toBeNull();
      courtesy.noteRefusal(failure);
      courtesy.noteRefusal(failure);
      await clock.advance(pauseMs - 1);
      expect(courtesy.refusal()).toBe(failure);
      await clock.advance(1);
    }
    courtesy.noteLogin();
    courtesy.noteRefusal(failure);
    await clock.advance(1000);
    expect(courtesy.refusal()).toBeNull();
  });
});
