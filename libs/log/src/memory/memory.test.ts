import { encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import type { ManualClock } from '../manual-clock.ts';
import { createMemoryLog, createMemoryStore, openMemoryLog } from './index.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
const META = { topic: 'meta', partition: 0 } as const;
const record = (value: string | null, key = 'k'): RecordInput => ({
  key: encodeText(key),
  value: value === null ? null : encodeText(value),
  headers: [],
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('memory log', () => {
  it('[LOG-MEMORY-DETERMINISTIC] the same script gives the same trace, with no time or chance but those given', async () => {
    const forbidden = [
      vi.spyOn(globalThis, 'setTimeout'),
      vi.spyOn(globalThis, 'setImmediate'),
      vi.spyOn(Date, 'now'),
      vi.spyOn(performance, 'now'),
      vi.spyOn(Math, 'random'),
      vi.spyOn(globalThis.crypto, 'getRandomValues'),
    ];
    const traces = [await runScript(createManualClock()), await runScript(createManualClock())];
    const uses = forbidden.map((spy) => spy.mock.calls.length);
    vi.restoreAllMocks();
    expect(traces[0]).toEqual(traces[1]);
    expect(traces[0]!.length).toBeGreaterThan(10);
    expect(uses).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it('[LOG-MEMORY-STORE] two stores have different ids, and handles on one store have the same', () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock });
    const ids = [openMemoryLog(store, { clock }), openMemoryLog(store, { clock }), createMemoryLog({ clock })].map(
      (log) => log.description.clusterId,
    );
    expect(ids[0]).toBe(ids[1]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(createMemoryLog({ clock, clusterId: 'mine' }).description).toEqual({
      clusterId: 'mine',
      driver: 'memory',
      partitions: 4,
      maxRecordBytes: 8_388_608,
      retentionMs: 86_400_000,
    });
  });

  it('[LOG-RETENTION] what is older than retention is evicted, and nothing younger', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock, retentionMs: 1000 });
    await log.append(EVENTS, [record('a')]);
    await clock.advance(600);
    await log.append(EVENTS, [record('b')]);
    await clock.advance(400);
    expect(await log.bounds(EVENTS)).toEqual({ start: 0, end: 2 });
    await clock.advance(1);
    expect(await log.bounds(EVENTS)).toEqual({ start: 1, end: 2 });
    await clock.advance(10_000);
    expect(await log.bounds(EVENTS)).toEqual({ start: 2, end: 2 });
    await expect(log.read(EVENTS, 1)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
    expect((await log.append(EVENTS, [record('c')])).offsets).toEqual([2]);
  });

  it('[LOG-TIMESTAMP] a wall clock that is set back does not take timestamps back', async () => {
    const clock = createManualClock(5000);
    const log = createMemoryLog({ clock });
    await log.append(EVENTS, [record('a')]);
    clock.setWall(1000);
    expect((await log.append(EVENTS, [record('b')])).timestampMs).toBe(5000);
    clock.setWall(6000);
    expect((await log.append(EVENTS, [record('c')])).timestampMs).toBe(6000);
  });

  it('[LOG-COMPACT-TOMBSTONE] compaction keeps the newest of a key, and a tombstone until it is older than retention', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock, retentionMs: 1000 });
    await log.append(META, [record('1', 'a'), record('1', 'b'), record('2', 'a'), record(null, 'b')]);
    const held = async (): Promise<number[]> => (await log.read(META, 0)).records.map(({ offset }) => offset);
    expect(await held()).toEqual([0, 1, 2, 3]);
    log.controls.compact('meta');
    expect(await held()).toEqual([2, 3]);
    await clock.advance(1001);
    log.controls.compact('meta');
    expect(await held()).toEqual([2]);
    const end = await log.read(META, 3);
    expect([end.records, end.next]).toEqual([[], 4]);
    expect((await log.append(META, [record('3', 'a')])).offsets).toEqual([4]);
  });

  it('[LOG-COMPACT-GRACE] a compacted topic does not grow without bound, and superseded records stay for the grace', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock, compactionGraceMs: 1000 });
    for (let index = 0; index < 5000; index++) await log.append(META, [record(String(index))]);
    expect(log.store.partition(META).count).toBe(5000);
    await clock.advance(2000);
    for (let index = 0; index < 5000; index++) await log.append(META, [record(String(index))]);
    expect(log.store.partition(META).count).toBeLessThanOrEqual(5001);
    const last = await log.read(META, 9999);
    expect(last.records.map(({ offset }) => offset)).toEqual([9999]);
  });

  it('[LOG-SIZE-CAP] at the size cap appends are refused, reading goes on, and eviction makes room', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock, maxBytes: 100 });
    await log.append(EVENTS, [record('x'.repeat(80))]);
    await expect(log.append(EVENTS, [record('y'.repeat(30))])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'size-cap' },
    });
    expect((await log.read(EVENTS, 0)).records).toHaveLength(1);
    log.controls.evictBefore(EVENTS, 1);
    expect((await log.append(EVENTS, [record('y'.repeat(30))])).offsets).toEqual([1]);
  });

  it('[LOG-GROUP-LEASE] a process whose timers stand loses its partitions and gets a share again when it goes on', async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock, leaseMs: 3000 });
    const stalled = createManualClock();
    const told: Record<string, readonly number[]> = {};
    const seat = (name: string, own: ManualClock): Promise<unknown> =>
      openMemoryLog(store, { clock: own }).join({
        group: 'g',
        member: name,
        onChange(assigned) {
          told[name] = assigned;
        },
      });
    await seat('a', clock);
    await seat('b', stalled);
    await clock.advance(0);
    await stalled.advance(0);
    expect(told).toEqual({ a: [0, 1], b: [2, 3] });
    await clock.advance(4000);
    expect(told).toEqual({ a: [0, 1, 2, 3], b: [2, 3] });
    await stalled.advance(1001);
    await clock.advance(0);
    expect(told).toEqual({ a: [0, 1], b: [2, 3] });
  });

  it('[LOG-GROUP-LEAVE] closing a log leaves its groups at once, without waiting for the lease', async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock });
    const doomed = openMemoryLog(store, { clock });
    const seat = await openMemoryLog(store, { clock }).join({ group: 'g', member: 'a', onChange: () => undefined });
    await doomed.join({ group: 'g', member: 'b', onChange: () => undefined });
    await clock.advance(0);
    expect(seat.assigned()).toEqual([0, 1]);
    await doomed.close();
    await clock.advance(0);
    expect(seat.assigned()).toEqual([0, 1, 2, 3]);
  });

  it('[LOG-GROUP-LEASE] an expired member comes back with its next renewal', async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock, leaseMs: 3000 });
    const [a, b] = await Promise.all(
      ['a', 'b'].map((member) =>
        openMemoryLog(store, { clock }).join({ group: 'g', member, onChange: () => undefined }),
      ),
    );
    await clock.advance(0);
    store.controls.expireMember('g', 'b');
    await clock.advance(0);
    expect(a!.assigned()).toEqual([0, 1, 2, 3]);
    await clock.advance(1000);
    expect([a!.assigned().length, b!.assigned().length]).toEqual([2, 2]);
  });
});

/** A little of everything, by two processes; what each sees and when. */
async function runScript(clock: ManualClock): Promise<string[]> {
  const trace: string[] = [];
  const store = createMemoryStore({ clock, clusterId: 'script' });
  const [a, b] = [openMemoryLog(store, { clock }), openMemoryLog(store, { clock })];
  const note = (text: string): void => {
    trace.push(`${clock.monoMs()} ${text}`);
  };
  const follow = async (): Promise<void> => {
    let at = 0;
    for (;;) {
      const batch = await b.read(EVENTS, at, { waitMs: 50 });
      note(`read ${at} to ${batch.next}`);
      at = batch.next;
    }
  };
  const following = follow().catch((error: unknown) => {
    note((error as { code: string }).code);
  });
  await a.join({
    group: 'g',
    member: 'a',
    onChange: (assigned) => {
      note(`a ${assigned.join()}`);
    },
  });
  const seat = await b.join({
    group: 'g',
    member: 'b',
    onChange: (assigned) => {
      note(`b ${assigned.join()}`);
    },
  });
  for (let index = 0; index < 5; index++) {
    await clock.advance(30);
    const { offsets, timestampMs } = await a.append(EVENTS, [record(String(index))]);
    note(`append ${offsets.join()} at ${timestampMs}`);
  }
  await seat.leave();
  await clock.advance(500);
  await b.close();
  await a.close();
  await following;
  return trace;
}
