/** Requests that retention took from `inbound` before a worker could serve them. */
import { afterEach, describe, expect, it } from 'vitest';
import { readCheckpoint } from '@throughline/protocol';
import type { Checkpoint, LostRequests } from '@throughline/protocol';
import { errorOf, textOf } from './testing/messages.ts';
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

describe('a batch of which retention took the first members', () => {
  const OLD = { version: '2025-03-26' };
  const call = (id: number, name: string, args: object = {}): object => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  });
  /** By id: what each request was told, in order. */
  const told = (at: number): Readonly<Record<string, unknown[]>> => {
    const all: Record<string, unknown[]> = {};
    for (const message of bench.stream(`r${at}`).messages) {
      if (!('id' in message) || 'method' in message) continue;
      (all[String(message.id)] ??= []).push(errorOf(message) ?? textOf(message));
    }
    return all;
  };
  const LOST = { code: 'OWNER_LOST', mayHaveRun: true };

  it('[WRK-LOST-BATCH] says so for each of them, and ends with the last answer', async () => {
    const first = await openWith(5);
    first.crash();
    const members = [call(1, 'effect'), call(2, 'effect'), { jsonrpc: '2.0', method: 'notifications/x' }];
    const [at = -1] = await bench.post('k', [...members, call(3, 'effect', { token: 'kept', ms: 200 })], OLD);
    evictInbound(at + 3);
    await bench.start(QUICK);
    const { ends, late } = await bench.ended(at);
    expect(told(at)).toMatchObject({ '1': [LOST], '2': [LOST], '3': ['effect kept'] });
    expect([ends, late]).toEqual([1, 0]);
    const answers = bench
      .accepted()
      .flatMap(({ body }) => (body.type === 'message' && body.answers !== null ? [body.answers] : []));
    expect(answers).toEqual([at, at + 1, at + 3]);
    expect(bench.runs.map(({ token }) => token)).toEqual(['kept']);
  });

  it.each([
    ['before', 0],
    ['after', 5000],
  ])('[WRK-LOST-BATCH] says so once, though its owner dies %s its checkpoint', async (_, ms) => {
    const first = await openWith(6);
    first.crash();
    const [at = -1] = await bench.post('k', [call(1, 'effect'), call(2, 'lookup', { ms: 20_000 })], OLD);
    evictInbound(at + 1);
    const second = await bench.start(QUICK);
    await bench.until(() => bench.stream(`r${at}`).messages.length === 1);
    await bench.time.advance(ms);
    second.crash();
    await bench.start(QUICK);
    await bench.ended(at);
    expect(told(at)).toMatchObject({ '1': [LOST] });
    expect(Object.keys(told(at))).toEqual(['1', '2']);
  });

  it('[WRK-LOST-BATCH] says nothing of a member that was answered before', async () => {
    const first = await openWith(7);
    const [at = -1] = await bench.post('k', [call(1, 'effect'), call(2, 'effect', { ms: 60_000 })], OLD);
    await bench.until(() => bench.stream(`r${at}`).messages.length === 1);
    await bench.time.advance(5000);
    first.crash();
    evictInbound(at + 1);
    await bench.start(QUICK);
    await bench.ended(at);
    expect(told(at)).toMatchObject({ '1': ['effect '], '2': [{ code: 'OWNER_LOST' }] });
  });

  it('[WRK-LOST-BATCH] whose last members an owner has not met either, ends when the next record shows it', async () => {
    bench = await openBench(8);
    let isHeld = false;
    let release = (): void => undefined;
    await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        async read(from, position, options) {
          if (isHeld && from.topic === 'inbound') await new Promise<void>((resolve) => (release = resolve));
          return await log.read(from, position, { ...options, maxBytes: 1 });
        },
      }),
    });
    await bench.open('k');
    await bench.time.advance(3000);
    const [at = -1] = await bench.post('k', [call(1, 'effect'), call(2, 'effect')], OLD);
    isHeld = true;
    await bench.until(() => bench.stream(`r${at}`).messages.length === 1);
    const next = await bench.call('k', 3, 'effect');
    evictInbound(next);
    isHeld = false;
    release();
    await bench.ended(at);
    expect(told(at)).toMatchObject({ '1': ['effect '], '2': [LOST] });
  });
});
