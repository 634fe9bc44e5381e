import type { Log } from '@throughline/log';
import { LogError } from '@throughline/log';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import { decodeText, encodeText } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { HistoryGuard } from './history-guard.ts';
import { Meta } from './meta.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
const INBOUND = { topic: 'inbound', partition: 0 } as const;
const OPEN = new AbortController().signal;
const plain = (text: string) => ({ key: encodeText('k'), value: encodeText(text), headers: [] });

function createWorld() {
  const time = createVirtualTime({ seed: 1 });
  const store = createMemoryStore({ clock: time.clock(), partitions: 1, clusterId: 'here' });
  const plainLog = openMemoryLog(store, { clock: time.clock() });
  const told: string[] = [];
  /** Another process, which has read nothing so far. */
  const join = async (name: string, wrap: (log: Log) => Log = (log) => log) => {
    const clock = time.clock(name);
    const log = wrap(openMemoryLog(store, { clock }));
    const meta = new Meta({ log, clock });
    const epoch = await time.run(meta.ensureEpoch(time.random));
    const guard = new HistoryGuard({
      log,
      clock,
      random: time.random,
      meta,
      logger: { warn: (event) => void told.push(event), error: (event) => void told.push(event) },
    });
    return { log, meta, guard, epoch };
  };
  const types = (topic: 'inbound' | 'events'): string[] =>
    store
      .partition({ topic, partition: 0 })
      .read(store.partition({ topic, partition: 0 }).bounds().start, 1e9)
      .records.map(({ headers }) => decodeText(headers.find(([header]) => header === 'type')?.[1] ?? new Uint8Array()));
  return { time, store, log: plainLog, join, told, types };
}

describe('the guard of the history', () => {
  it('[GRD-ACK] an own ack at or below what was acknowledged is proof: the append fails, and one new epoch follows', async () => {
    const { time, store, join, log } = createWorld();
    let isMetaAway = false;
    const { guard, meta, epoch } = await join('a', (own) => ({
      ...own,
      append: (to, records) =>
        isMetaAway && to.topic === 'meta'
          ? Promise.reject(new LogError('APPEND_REFUSED', 'away', { reason: 'other' }))
          : own.append(to, records),
    }));
    for (const text of ['a', 'b', 'c']) await guard.append(INBOUND, [plain(text)]);
    expect(guard.mark(INBOUND)).toEqual({ end: 3, anchor: null });
    store.controls.truncate(INBOUND, 2);
    isMetaAway = true;
    await expect(guard.append(INBOUND, [plain('d')])).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect(guard.isBroken()).toBe(true);
    await expect(guard.append(EVENTS, [plain('e')])).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect((await log.bounds(EVENTS)).end).toBe(0);
    await time.advance(5000);
    expect(meta.epochs()).toHaveLength(1);
    isMetaAway = false;
    await time.advance(1000);
    expect(guard.isBroken()).toBe(false);
    expect(meta.epochs()).toMatchObject([
      { token: epoch },
      { previous: epoch, reason: 'inbound/0: acknowledged 2 at or below 2' },
    ]);
    expect(await guard.append(INBOUND, [plain('f')])).toMatchObject({ offsets: [3] });
    await time.advance(60_000);
    expect(meta.epochs()).toHaveLength(2);
  });

  it.each([
    ['ends before what was acknowledged', 0],
    ['has grown beyond it with other records', 4],
  ])('[GRD-AGAIN] asked for a look, it proves a log that %s', async (_what, regrown) => {
    const { time, store, join, log } = createWorld();
    const { guard, meta } = await join('a');
    await time.run(guard.settled(0, OPEN));
    for (const text of ['a', 'b', 'c']) await guard.append(INBOUND, [plain(text)]);
    store.controls.recreate('inbound');
    for (let count = 0; count < regrown; count++) await log.append(INBOUND, [plain('x')]);
    await time.advance(60_000);
    expect(meta.epochs()).toHaveLength(1);
    guard.lookAgain(0);
    await time.advance(5000);
    expect(meta.epochs()).toHaveLength(2);
  });

  it('[GRD-AGAIN] a look at a log that holds what was acknowledged appends nothing, compares what it read from then on, and comes once in five seconds', async () => {
    let looks = 0;
    const { time, store, join, log, types } = createWorld();
    const { guard, meta } = await join('a', (own) => ({
      ...own,
      bounds(of) {
        if (of.topic === 'inbound') looks++;
        return own.bounds(of);
      },
    }));
    await time.run(guard.settled(0, OPEN));
    for (const text of ['a', 'b']) await guard.append(INBOUND, [plain(text)]);
    looks = 0;
    for (let count = 0; count < 10; count++) {
      guard.lookAgain(0);
      await time.settle();
    }
    expect([looks, types('inbound').length, guard.mark(INBOUND)?.anchor?.offset]).toEqual([1, 2, 1]);
    await time.advance(5000);
    store.controls.recreate('inbound');
    for (let count = 0; count < 4; count++) await log.append(INBOUND, [plain('b')]);
    guard.lookAgain(0);
    await time.advance(5000);
    expect(meta.epochs()).toMatchObject([{}, { reason: 'inbound/0: another record stands where one was read' }]);
  });

  it('[GRD-MARK] a process that has read nothing proves by marks, before it trusts the log', async () => {
    const { time, store, join, log, types } = createWorld();
    const first = await join('a');
    for (const text of ['a', 'b', 'c']) await log.append(EVENTS, [plain(text)]);
    await first.meta.tellMarks(first.epoch, [[EVENTS, { end: 3, anchor: null }]]);
    store.controls.recreate('events');
    const second = await join('b');
    const settled = second.guard.settled(0, OPEN);
    // In doubt at once, and for a moment nothing but that: the view may lag.
    expect(await time.run(second.guard.trusts(0, OPEN))).toBe(false);
    expect(types('events')).toEqual([]);
    expect(await time.run(settled)).toBe(true);
    expect(types('events')).toEqual(['history.probe']);
    expect(second.meta.epochs()).toHaveLength(2);
    expect(await time.run(second.guard.trusts(0, OPEN))).toBe(true);
  });

  it('[GRD-DIFFERS] a log that has grown beyond the mark is given away by the record that was read', async () => {
    const { time, store, join, log } = createWorld();
    const first = await join('a');
    const append = async (...texts: string[]) => {
      for (const text of texts) await log.append(INBOUND, [plain(text)]);
    };
    await append('a', 'b', 'c');
    const { records } = await log.read(INBOUND, 0);
    first.guard.noteRead(first.epoch, INBOUND, records[2]!, 3);
    const mark = first.guard.mark(INBOUND)!;
    await first.meta.tellMarks(first.epoch, [[INBOUND, mark]]);
    store.controls.truncate(INBOUND, 1);
    await append('x', 'y', 'z', 'z');
    const second = await join('b');
    expect(await time.run(second.guard.settled(0, OPEN))).toBe(true);
    expect(second.meta.epochs()).toMatchObject([{}, { reason: 'inbound/0: another record stands where one was read' }]);
  });

  it('[GRD-DIFFERS] a newer mark of others does not hide that what this process read is gone', async () => {
    const { time, store, join, log } = createWorld();
    const [reader, writer] = [await join('a'), await join('b')];
    for (const text of ['a', 'b', 'c']) await log.append(EVENTS, [plain(text)]);
    const { records } = await log.read(EVENTS, 0);
    reader.guard.noteRead(reader.epoch, EVENTS, records[2]!, 3);
    store.controls.truncate(EVENTS, 1);
    for (const text of ['x', 'y', 'z', 'z']) await log.append(EVENTS, [plain(text)]);
    const regrown = await log.read(EVENTS, 4);
    writer.guard.noteRead(writer.epoch, EVENTS, regrown.records[0]!, 5);
    await writer.meta.tellMarks(writer.epoch, [[EVENTS, writer.guard.mark(EVENTS)!]]);
    await time.advance(1);
    reader.guard.suspect(reader.epoch, EVENTS, 3);
    await time.advance(5000);
    expect(reader.meta.epochs()).toMatchObject([{}, { reason: 'events/0: another record stands where one was read' }]);
  });

  it('[GRD-SUSPECT] an empty read of a broker that knows less, behind the ack of a probe, rotates nothing', async () => {
    const { time, join, told } = createWorld();
    let isBehind = false;
    const { guard, meta, log, epoch } = await join('a', (own) => ({
      ...own,
      async read(from, position, options) {
        const batch = await own.read(from, position, options);
        const isLook = isBehind && from.topic === 'events' && options?.maxBytes === 1;
        return isLook ? { records: [], next: position, bounds: { ...batch.bounds, end: position } } : batch;
      },
    }));
    for (const text of ['a', 'b', 'c']) await log.append(EVENTS, [plain(text)]);
    const { records } = await log.read(EVENTS, 0);
    guard.noteRead(epoch, EVENTS, records[2]!, 3);
    isBehind = true;
    guard.suspect(epoch, EVENTS, 3);
    await time.advance(5000);
    expect(meta.epochs()).toHaveLength(1);
    isBehind = false;
    await time.advance(2000);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(true);
    expect(told.at(-1)).toBe('the history of the log holds');
  });

  it('[GRD-SUSPECT] a view that lags is a suspicion that a probe removes, and rotates nothing', async () => {
    const { time, join, told, types } = createWorld();
    let isLagging = false;
    const { guard, meta, log, epoch } = await join('a', (own) => ({
      ...own,
      async bounds(of) {
        const bounds = await own.bounds(of);
        return isLagging && of.topic === 'events' ? { ...bounds, end: bounds.end - 2 } : bounds;
      },
    }));
    for (const text of ['a', 'b', 'c']) await guard.append(EVENTS, [plain(text)]);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(true);
    isLagging = true;
    guard.suspect(epoch, EVENTS, 3);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(false);
    await time.advance(3000);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(false);
    isLagging = false;
    await time.advance(1000);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(true);
    expect(types('events').filter((type) => type === 'history.probe').length).toBeGreaterThan(0);
    expect(types('inbound')).toEqual([]);
    expect(meta.epochs()).toHaveLength(1);
    expect(told).toEqual([
      'the log is not what was seen before; the partition is not served until that is clear',
      'the history of the log holds',
    ]);
    expect((await log.bounds(EVENTS)).end).toBeGreaterThan(3);
  });

  it('[GRD-SUSPECT] without an ack there is no proof, however long: nothing rotates and nothing is trusted', async () => {
    const { time, store, join } = createWorld();
    const { guard, meta, epoch } = await join('a');
    await guard.append(EVENTS, [plain('a')]);
    store.controls.recreate('events');
    store.controls.failAppends('refused');
    guard.suspect(epoch, EVENTS, 1);
    await time.advance(60_000);
    expect(meta.epochs()).toHaveLength(1);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(false);
    store.controls.failAppends(null);
    await time.advance(2000);
    expect(meta.epochs()).toHaveLength(2);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(true);
  });

  it('[GRD-EPOCH] marks and reads of a former epoch prove nothing, whenever they come', async () => {
    const { time, store, join, log } = createWorld();
    const { guard, meta, epoch } = await join('a');
    for (const text of ['a', 'b', 'c']) await log.append(EVENTS, [plain(text)]);
    const { records } = await log.read(EVENTS, 0);
    store.controls.recreate('events');
    await time.run(meta.proposeEpoch(time.random, epoch, 'by an operator'));
    await time.advance(1);
    // A read that began before the change, a mark of an owner that has not heard of it.
    guard.noteRead(epoch, EVENTS, records[2]!, 3);
    await meta.tellMarks(epoch, [[EVENTS, { end: 3, anchor: null }]]);
    guard.suspect(epoch, EVENTS, 3);
    expect(await time.run(guard.trusts(0, OPEN))).toBe(true);
    expect(await guard.append(EVENTS, [plain('d')])).toMatchObject({ offsets: [0] });
    await time.advance(5000);
    expect(meta.epochs()).toHaveLength(2);
  });

  it('[GRD-EPOCH] a look that began before another process rotated says nothing about the new epoch', async () => {
    const { time, store, join, log, types } = createWorld();
    const held: (() => void)[] = [];
    let isSlow = false;
    const { guard, meta, epoch } = await join('a', (own) => ({
      ...own,
      async bounds(of) {
        if (isSlow && of.topic === 'events') await new Promise<void>((resolve) => held.push(resolve));
        return await own.bounds(of);
      },
    }));
    for (const text of ['a', 'b', 'c']) await log.append(EVENTS, [plain(text)]);
    const { records } = await log.read(EVENTS, 0);
    guard.noteRead(epoch, EVENTS, records[2]!, 3);
    store.controls.truncate(EVENTS, 1);
    for (const text of ['x', 'y', 'z']) await log.append(EVENTS, [plain(text)]);
    isSlow = true;
    guard.suspect(epoch, EVENTS, 3);
    await time.advance(10);
    // Two looks, then the one behind the ack of the probe: that one is under way when the other's epoch comes.
    for (const pauseMs of [400, 10]) {
      held.shift()?.();
      await time.advance(pauseMs);
    }
    expect(types('events').at(-1)).toBe('history.probe');
    expect(held).toHaveLength(1);
    await time.run(meta.proposeEpoch(time.random, epoch, 'proved by another process'));
    await time.advance(10);
    isSlow = false;
    held.shift()?.();
    await time.advance(10_000);
    expect(meta.epochs()).toMatchObject([{}, { reason: 'proved by another process' }]);
    expect(guard.isBroken()).toBe(false);
  });

  it('[GRD-LOOK] a log that does not answer is waited for; a caller that gives up is told so', async () => {
    const { time, join } = createWorld();
    let isAway = true;
    const { guard } = await join('a', (own) => ({
      ...own,
      bounds: (of) =>
        isAway && of.topic !== 'meta' ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'away')) : own.bounds(of),
    }));
    const gone = new AbortController();
    const given = guard.trusts(0, gone.signal);
    await time.advance(3000);
    gone.abort();
    expect(await time.run(given)).toBe(false);
    const waiting = guard.trusts(0, OPEN);
    isAway = false;
    await time.advance(1000);
    expect(await time.run(waiting)).toBe(true);
    guard.stop();
    expect(await time.run(guard.settled(0, OPEN))).toBe(false);
  });
});
