import { describe, expect, it } from 'vitest';
import { createVirtualTime } from '@throughline/testkit';
import { answerWithin, LOG_ANSWER_MS } from './answer-within.ts';
import { createMemoryLog } from './memory/index.ts';
import type { Log, Membership } from './port.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
const never = <T>(): Promise<T> => new Promise(() => undefined);

function setUp() {
  const time = createVirtualTime({ seed: 1 });
  const clock = time.clock();
  const memory = createMemoryLog({ clock: time.clock('store'), partitions: 1 });
  const membership: Membership = {
    member: 'm',
    assigned: () => [0],
    commit: () => never(),
    leave: () => never(),
  };
  const silent: Log = {
    description: memory.description,
    describe: () => never(),
    onGrown: () => () => undefined,
    append: () => never(),
    read: () => never(),
    bounds: () => never(),
    join: () => Promise.resolve(membership),
    committed: () => never(),
    close: () => never(),
  };
  /** How long `work` takes, and the code that it rejects with. */
  const ended = async (work: () => Promise<unknown>): Promise<readonly [code: string, ms: number]> => {
    const at = time.nowMs();
    const code = await time.run(
      work().then(
        () => 'none',
        (error: unknown) => (error as { code?: string }).code ?? String(error),
      ),
    );
    return [code, time.nowMs() - at];
  };
  return { time, clock, memory, silent, ended };
}

describe('a log that answers in time', () => {
  it('[WAIT-LOG] every operation of a log that never answers ends after 30 s, an append as unknown, a read after its own wait', async () => {
    expect(LOG_ANSWER_MS).toBe(30_000);
    const { time, clock, silent, ended } = setUp();
    const log = answerWithin(silent, clock);
    expect(await ended(() => log.append(EVENTS, []))).toEqual(['APPEND_UNKNOWN', 30_000]);
    // Workers may wait for acks for longer than that: then it does not cut them short.
    expect(await ended(() => answerWithin({ ...silent }, clock, 120_000).append(EVENTS, []))).toEqual([
      'APPEND_UNKNOWN',
      130_000,
    ]);
    expect(await ended(() => answerWithin({ ...silent }, clock, 5000).append(EVENTS, []))).toEqual([
      'APPEND_UNKNOWN',
      30_000,
    ]);
    expect(await ended(() => log.read(EVENTS, 0))).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(await ended(() => log.read(EVENTS, 0, { waitMs: 5000 }))).toEqual(['LOG_UNAVAILABLE', 35_000]);
    expect(await ended(() => log.bounds(EVENTS))).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(await ended(() => log.describe())).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(await ended(() => log.committed('workers'))).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(await ended(() => log.close())).toEqual(['LOG_UNAVAILABLE', 30_000]);
    const membership = await log.join({ group: 'workers', member: 'm', onChange: () => undefined });
    expect(membership.assigned()).toEqual([0]);
    expect(await ended(() => membership.commit(0, 1))).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(await ended(() => membership.leave())).toEqual(['LOG_UNAVAILABLE', 30_000]);
    expect(time.pending()).toBe(0);
  });

  it('[WAIT-LOG] a read whose signal fires ends at once, whatever its driver does', async () => {
    const { time, clock, silent, ended } = setUp();
    const log = answerWithin(silent, clock);
    const caller = new AbortController();
    clock.setTimer(10, () => {
      caller.abort();
    });
    expect(await ended(() => log.read(EVENTS, 0, { waitMs: 5000, signal: caller.signal }))).toEqual(['ABORTED', 10]);
    expect(await ended(() => log.read(EVENTS, 0, { signal: caller.signal }))).toEqual(['ABORTED', 0]);
    expect(time.pending()).toBe(0);
  });

  it('[WAIT-LOG] a seat in a group that comes after the deadline is given up', async () => {
    const { time, clock, silent, ended } = setUp();
    let left = 0;
    const late = Promise.withResolvers<Membership>();
    const log = answerWithin({ ...silent, join: () => late.promise }, clock);
    const joining = (): Promise<unknown> => log.join({ group: 'workers', member: 'm', onChange: () => undefined });
    expect(await ended(joining)).toEqual(['LOG_UNAVAILABLE', 30_000]);
    const leave = (): Promise<void> => {
      left++;
      return Promise.resolve();
    };
    late.resolve({ member: 'm', assigned: () => [], commit: () => never(), leave });
    await time.settle();
    expect(left).toBe(1);
  });

  it('[WAIT-LOG] a log that answers is passed on as it is, and is waited for once however often it is wrapped', async () => {
    const { time, clock, memory } = setUp();
    const log = answerWithin(memory, clock);
    expect(answerWithin(log, clock)).toBe(log);
    const { offsets } = await time.run(log.append(EVENTS, [{ key: null, value: null, headers: [] }]));
    expect(offsets).toEqual([0]);
    expect((await time.run(log.read(EVENTS, 0))).records).toHaveLength(1);
    expect(await time.run(log.bounds(EVENTS))).toEqual({ start: 0, end: 1 });
    await expect(time.run(log.read(EVENTS, 5))).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
    expect(time.pending()).toBe(0);
  });
});
