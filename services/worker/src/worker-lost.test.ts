/** Requests that retention took from `inbound` before a worker could serve them. */
import { afterEach, describe, expect, it } from 'vitest';
import { readCheckpoint } from '@throughline/protocol';
import type { Checkpoint, LostRequests } from '@throughline/protocol';
import { textOf } from './testing/messages.ts';
import { EVENTS, INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400, checkpointMs: 500 } };

async function openWith(seed: number): Promise<BenchWorker> {
  bench = await openBench(seed);
  const worker = await bench.start(QUICK);
  await bench.open('k');
  await bench.time.advance(3000);
  return worker;
}

function newestCheckpoint(): Checkpoint {
  const event = bench.accepted().findLast(({ body }) => body.type === 'checkpoint');
  const checkpoint = event === undefined ? null : readCheckpoint(event.record);
  if (checkpoint === null) throw new TypeError('no checkpoint');
  return checkpoint;
}

const ranges = (lost: readonly LostRequests[] | undefined): number[][] =>
  (lost ?? []).map(({ from, to }) => [from, to]);
const evictInbound = (before: number): void => {
  bench.store.controls.evictBefore(INBOUND, before);
};

describe('requests that nobody served while the log held them', () => {
  it('[WRK-LOST] are named by the next owner, which serves what came after them', async () => {
    const first = await openWith(1);
    first.crash();
    const lost = await bench.call('k', 1, 'effect', { token: 'lost' });
    const also = await bench.call('k', 2, 'echo', { token: 'lost' });
    const kept = await bench.call('k', 3, 'effect', { token: 'kept' });
    evictInbound(kept);
    const claimedFrom = bench.records(EVENTS).at(-1)!.offset + 1;
    await bench.start(QUICK);
    expect(textOf((await bench.ended(kept)).messages[0])).toBe('effect kept');
    const { lost: told, inbound } = newestCheckpoint();
    expect(ranges(told)).toEqual([[lost, also + 1]]);
    expect(told?.[0]?.since).toBeGreaterThan(claimedFrom);
    expect(inbound).toBe(kept + 1);
    expect(bench.runs.map(({ token }) => token)).toEqual(['kept']);
  });

  it('[WRK-LOST] count those that a former owner had begun, and whose words are gone; those that run on an owner do not', async () => {
    const first = await openWith(2);
    const running = await bench.call('k', 1, 'effect', { ms: 60_000, token: 'running' });
    await bench.until(() => bench.runs.length === 1);
    await bench.time.advance(3000);
    evictInbound(running + 1);
    await bench.time.advance(3000);
    expect(newestCheckpoint()).toMatchObject({ open: [{ at: running }] });
    expect(newestCheckpoint().lost).toBeUndefined();
    first.crash();
    await bench.start(QUICK);
    await bench.time.advance(3000);
    expect(ranges(newestCheckpoint().lost)).toEqual([[running, running + 1]]);
    expect(newestCheckpoint().open).toEqual([]);
    expect(bench.runs).toHaveLength(1);
  });

  it('[WRK-LOST] an owner that fell behind retention names them as well', async () => {
    bench = await openBench(3);
    let isHeld = false;
    let release = (): void => undefined;
    const first = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        async read(from, position, options) {
          if (isHeld && from.topic === 'inbound') await new Promise<void>((resolve) => (release = resolve));
          return await log.read(from, position, options);
        },
      }),
    });
    await bench.open('k');
    isHeld = true;
    await bench.call('k', 1, 'echo');
    await bench.time.advance(6000);
    const lost = await bench.call('k', 2, 'effect', { token: 'lost' });
    const kept = await bench.call('k', 3, 'effect', { token: 'kept' });
    evictInbound(kept);
    isHeld = false;
    release();
    await bench.ended(kept);
    await bench.time.advance(3000);
    expect(ranges(newestCheckpoint().lost)).toEqual([[lost, kept]]);
    expect(first.worker.owned()).toEqual([0]);
  });

  it('[WRK-LOST] are told again by each successor, until `events` no longer holds what a client could resume at', async () => {
    const first = await openWith(4);
    first.crash();
    const lost = await bench.call('k', 1, 'effect');
    evictInbound(lost + 1);
    const second = await bench.start(QUICK);
    await bench.time.advance(3000);
    second.crash();
    await bench.start(QUICK);
    await bench.time.advance(3000);
    expect(ranges(newestCheckpoint().lost)).toEqual([[lost, lost + 1]]);
    bench.store.controls.evictBefore(EVENTS, bench.records(EVENTS).at(-1)!.offset);
    // Something happens, so that there is something to say.
    await bench.ended(await bench.call('k', 2, 'effect'));
    await bench.time.advance(3000);
    expect(newestCheckpoint().lost).toBeUndefined();
  });
});
