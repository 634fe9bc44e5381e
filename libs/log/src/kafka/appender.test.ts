import { encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { LogError } from '../errors.ts';
import { createManualClock } from '../manual-clock.ts';
import { createAppender } from './appender.ts';
import type { Appender, AppenderOptions } from './appender.ts';
import type { LanePool } from './lanes.ts';
import { createLanePool } from './lanes.ts';
import type { Producer, Stored } from './producer.ts';

const record = (text: string): RecordInput => ({ key: null, value: encodeText(text), headers: [] });
const textsOf = (records: readonly RecordInput[]): string[] =>
  records.map(({ value }) => new TextDecoder().decode(value ?? new Uint8Array(0)));

interface Request {
  readonly producer: number;
  readonly partition: number;
  readonly texts: string[];
  resolve(stored: Stored): void;
  reject(error: LogError): void;
}

/** Producers that answer when the test says so. */
function setUp(options: Partial<AppenderOptions> = {}) {
  const clock = createManualClock();
  const requests: Request[] = [];
  let made = 0;
  const producers: LanePool<Producer> = createLanePool(
    clock,
    () => 8,
    () => {
      const producer = ++made;
      return {
        lane: {
          to: () => {
            throw new Error('not used');
          },
          isAt: () => true,
          produce: (_topic, partition, records) =>
            new Promise((resolve, reject) => {
              requests.push({ producer, partition, texts: textsOf(records), resolve, reject });
            }),
        },
        destroy: () => undefined,
      };
    },
  );
  const map = {
    leaderOf: () => Promise.resolve({ host: 'a', port: 1 }),
    forget: () => undefined,
    metadata: () => Promise.reject(new Error('not used')),
    callAny: () => Promise.reject(new Error('not used')),
    callController: () => Promise.reject(new Error('not used')),
    close: () => undefined,
  };
  const appender = createAppender({
    clock,
    map,
    producers,
    maxBatchBytes: 1000,
    maxQueuedBytes: 10_000,
    appendTimeoutMs: 5000,
    ...options,
  });
  return { clock, requests, appender, producers };
}

const outcomeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => value,
    (error: unknown) => (error as LogError).code,
  );
const append = (appender: Appender, partition: number, text: string, bytes = 100): Promise<unknown> =>
  outcomeOf(appender.append('t', partition, [record(text)], bytes));

describe('appender', () => {
  it('[KAFKA-GROUP-COMMIT] what waits for a partition goes in one request, one at a time, and each append gets its own offsets', async () => {
    const { clock, requests, appender } = setUp();
    const first = append(appender, 0, 'a');
    await clock.advance(0);
    const others = ['b', 'c'].map((text) => append(appender, 0, text));
    await clock.advance(0);
    expect(requests.map(({ texts }) => texts)).toEqual([['a']]);
    requests[0]!.resolve({ baseOffset: 7, timestampMs: 1 });
    await clock.advance(0);
    expect(requests.map(({ texts }) => texts)).toEqual([['a'], ['b', 'c']]);
    requests[1]!.resolve({ baseOffset: 20, timestampMs: 2 });
    expect(await first).toEqual({ offsets: [7], timestampMs: 1 });
    expect(await Promise.all(others)).toEqual([
      { offsets: [20], timestampMs: 2 },
      { offsets: [21], timestampMs: 2 },
    ]);
    expect(new Set(requests.map(({ producer }) => producer)).size).toBe(1);
  });

  it('[KAFKA-SPLIT] a request stops growing before the bytes of a batch, and an append is never split', async () => {
    const { clock, requests, appender } = setUp();
    void append(appender, 0, 'first');
    await clock.advance(0);
    for (const [text, bytes] of [
      ['a', 400],
      ['b', 400],
      ['c', 400],
      ['d', 990],
      ['e', 100],
    ] as const)
      void append(appender, 0, text, bytes);
    for (let index = 0; index < 5; index++) {
      requests[index]?.resolve({ baseOffset: index * 10, timestampMs: 0 });
      await clock.advance(0);
    }
    expect(requests.map(({ texts }) => texts)).toEqual([['first'], ['a', 'b'], ['c'], ['d'], ['e']]);
  });

  it('[KAFKA-STALL] a partition without an answer holds a producer of its own', async () => {
    const { clock, requests, appender } = setUp();
    void append(appender, 0, 'stuck');
    void append(appender, 0, 'behind it');
    const other = append(appender, 1, 'free');
    await clock.advance(0);
    expect(requests.map(({ producer, partition }) => [producer, partition])).toEqual([
      [1, 0],
      [2, 1],
    ]);
    requests[1]!.resolve({ baseOffset: 3, timestampMs: 0 });
    expect(await other).toEqual({ offsets: [3], timestampMs: 0 });
  });

  it('[KAFKA-FALSE-ACK] the producer of a failed append is used for nothing any more, and the append is not repeated', async () => {
    const { clock, requests, appender, producers } = setUp();
    const failed = append(appender, 0, 'a');
    await clock.advance(0);
    const next = append(appender, 0, 'b');
    requests[0]!.reject(new LogError('APPEND_UNKNOWN', 'who knows'));
    await clock.advance(0);
    expect(await failed).toBe('APPEND_UNKNOWN');
    expect(requests.map(({ producer, texts }) => [producer, texts])).toEqual([
      [1, ['a']],
      [2, ['b']],
    ]);
    requests[1]!.resolve({ baseOffset: 5, timestampMs: 0 });
    expect(await next).toEqual({ offsets: [5], timestampMs: 0 });
    expect(producers.size()).toBe(1);
  });

  it('[KAFKA-QUEUE] what waits is bounded in bytes and in time, and what was refused was never sent', async () => {
    const { clock, requests, appender } = setUp({ maxQueuedBytes: 250 });
    void append(appender, 0, 'a');
    const waiting = append(appender, 0, 'b');
    expect(await append(appender, 0, 'c')).toBe('APPEND_REFUSED');
    await clock.advance(6000);
    requests[0]!.resolve({ baseOffset: 1, timestampMs: 0 });
    expect(await waiting).toBe('APPEND_REFUSED');
    await clock.advance(0);
    void append(appender, 0, 'd');
    await clock.advance(0);
    expect(requests.map(({ texts }) => texts)).toEqual([['a'], ['d']]);
  });

  it('[KAFKA-QUEUE] closing refuses what waits and gives what is under way a bounded time', async () => {
    const { clock, requests, appender } = setUp();
    void append(appender, 0, 'a');
    await clock.advance(0);
    const waiting = append(appender, 0, 'b');
    let isClosed = false;
    void appender.close(1000).then(() => {
      isClosed = true;
    });
    expect(await waiting).toBe('APPEND_REFUSED');
    await clock.advance(999);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    expect(isClosed).toBe(true);
    expect(requests).toHaveLength(1);
    expect(clock.timers()).toBe(0);
  });
});
