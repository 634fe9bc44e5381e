import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../conformance/index.ts';
import { sleep } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { hasLogCode } from '../errors.ts';
import type { Log, PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { makeScratchDirectory } from './scratch-directory.ts';
import type { ScratchDirectory } from './scratch-directory.ts';

const EVENTS = { topic: 'events', partition: 0 } as const;
const META = { topic: 'meta', partition: 0 } as const;
const record = (value: string | null, key = 'k'): RecordInput => ({
  key: encodeText(key),
  value: value === null ? null : encodeText(value),
  headers: [['type', encodeText('test')]],
});

let scratch: ScratchDirectory;
beforeEach(() => {
  scratch = makeScratchDirectory();
});
afterEach(async () => {
  await scratch.dispose();
});

const offsetsOf = async (log: Log, ref: PartitionRef): Promise<number[]> => {
  const { start } = await log.bounds(ref);
  return (await log.read(ref, start)).records.map(({ offset }) => offset);
};

/** The real clock, with a calendar that the test sets. */
function calendar(startMs: number): Clock & { wall: number } {
  return {
    ...systemClock,
    wall: startMs,
    wallMs() {
      return this.wall;
    },
  };
}

describe('sqlite log: the file', () => {
  it('[LOG-FILE-MODE] the file and the files beside it are readable and writable by their owner alone', async () => {
    const { log } = await scratch.open();
    await log.append(EVENTS, [record('a')]);
    expect(readdirSync(scratch.path('.')).sort()).toEqual(['log.db', 'log.db-shm', 'log.db-wal']);
    for (const name of readdirSync(scratch.path('.'))) expect(statSync(scratch.path(name)).mode & 0o777).toBe(0o600);
    await log.close();
    expect(readdirSync(scratch.path('.'))).toEqual(['log.db']);
  });

  it.each(['removed', 'replaced'])(
    '[LOG-FILE-GONE] a file that is %s while it is open acknowledges nothing more',
    async (how) => {
      const { log } = await scratch.open();
      await log.append(EVENTS, [record('a')]);
      const waiting = log.read(EVENTS, 1, { waitMs: 15_000 });
      rmSync(scratch.path('log.db'));
      if (how === 'replaced') writeFileSync(scratch.path('log.db'), '');
      await expect(waiting).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
      await expect(log.append(EVENTS, [record('b')])).rejects.toMatchObject({ code: 'APPEND_REFUSED' });
      await expect(log.bounds(EVENTS)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    },
  );

  it('[LOG-FILE-PARTITIONS] the partition count of an existing file wins over the option', async () => {
    const first = await scratch.open({ partitions: 7 });
    expect(first.log.description.partitions).toBe(7);
    const second = await scratch.open({ partitions: 2 });
    expect(second.log.description.partitions).toBe(7);
    const ref = { topic: 'sessions', partition: 6 } as const;
    expect((await second.log.append(ref, [record('a')])).offsets).toEqual([0]);
    for (const partitions of [0, 257, 1.5]) await expect(scratch.open({ partitions })).rejects.toThrow(RangeError);
  });

  it('[LOG-FILE-CREATE] handles that open the same new file at once agree on one log', async () => {
    for (let round = 0; round < 12; round++) {
      const file = scratch.path(`new-${round}.db`);
      const opened = await Promise.all(Array.from({ length: 6 }, () => scratch.open({ file })));
      expect(new Set(opened.map(({ log }) => log.description.clusterId)).size).toBe(1);
      const acks = await Promise.all(opened.map(({ log }) => log.append(EVENTS, [record('a')])));
      expect(acks.flatMap(({ offsets }) => offsets).sort()).toEqual([0, 1, 2, 3, 4, 5]);
      await Promise.all(opened.map(({ log }) => log.close()));
    }
  });

  it('[LOG-FILE-CREATE] another file is another log', async () => {
    const here = await scratch.open();
    const there = await scratch.open({ file: scratch.path('other.db') });
    expect(here.log.description.clusterId).not.toBe(there.log.description.clusterId);
  });

  it('[LOG-FILE-NEWER] a file of a newer format is refused, untouched, with the way out', async () => {
    const { log } = await scratch.open();
    await log.close();
    const db = new DatabaseSync(scratch.file);
    db.exec('PRAGMA user_version = 2');
    db.close();
    const before = readFileSync(scratch.file);
    await expect(scratch.open()).rejects.toMatchObject({
      code: 'LOG_INCOMPATIBLE',
      message: expect.stringMatching(/has format 2, and this version reads up to 1: use .* newer/) as string,
    });
    expect(readFileSync(scratch.file).equals(before)).toBe(true);
  });

  it('[LOG-FILE-FOREIGN] a file that is no log is refused and left as it is', async () => {
    const text = scratch.path('notes.txt');
    writeFileSync(text, 'these are notes, and no log\n'.repeat(100));
    const database = scratch.path('shop.db');
    const db = new DatabaseSync(database);
    db.exec('CREATE TABLE orders (id INTEGER)');
    db.close();
    for (const file of [text, database]) {
      const before = readFileSync(file);
      await expect(scratch.open({ file })).rejects.toMatchObject({
        code: 'LOG_INCOMPATIBLE',
        message: `${file} is no Throughline log: choose another file, or move this one away`,
      });
      expect(readFileSync(file).equals(before)).toBe(true);
    }
  });

  it('[LOG-FILE-ACCESS] a missing directory, and what cannot be opened as a file, are said in so many words', async () => {
    const missing = scratch.path('missing/log.db');
    await expect(scratch.open({ file: missing })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: `the directory ${scratch.path('missing')} does not exist: create it or choose another file`,
    });
    mkdirSync(scratch.path('folder'));
    writeFileSync(scratch.path('plain'), '');
    await expect(scratch.open({ file: scratch.path('plain/log.db') })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringContaining('choose another file') as string,
    });
    await expect(scratch.open({ file: scratch.path('folder') })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: `${scratch.path('folder')} is a folder: name a file in it, for example ${scratch.path('folder/log.db')}`,
    });
  });

  it('[LOG-FILE-DAMAGED] a damaged file is refused, untouched, with the way out', async () => {
    const { log } = await scratch.open();
    await log.close();
    const bytes = readFileSync(scratch.file);
    // The first page stays: it is a log of this product, whose tables cannot be read.
    bytes.fill(0x5a, 4096);
    writeFileSync(scratch.file, bytes);
    await expect(scratch.open()).rejects.toMatchObject({
      code: 'LOG_INCOMPATIBLE',
      message: expect.stringMatching(/log\.db is damaged \(.*\): restore it from a copy, or move it away/) as string,
    });
    expect(readFileSync(scratch.file).equals(bytes)).toBe(true);
  });

  it('[LOG-FILE-HEADERS] a row that was damaged, or written by another hand, is read as a record, by who waits too', async () => {
    const { log } = await scratch.open();
    await log.append(EVENTS, [record('before')]);
    const waiting = log.read(EVENTS, 1, { waitMs: 15_000 });
    const db = new DatabaseSync(scratch.file);
    db.exec('PRAGMA busy_timeout = 10000');
    const { slot, next } = db
      .prepare(`SELECT slot, next FROM partitions WHERE topic = 'events' AND partition = 0`)
      .get() as { slot: number; next: number };
    const rows = [
      [1, 'key', 'value', Uint8Array.of(0xff, 0xff, 1)],
      [2n ** 62n, 5, 1.5, 'text'],
      ['no time', null, null, null],
    ] as const;
    db.exec('BEGIN IMMEDIATE');
    const insert = db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?)');
    for (const [index, [time, ...columns]] of rows.entries())
      insert.run(BigInt(slot) * 2n ** 43n + BigInt(next + index), time, ...columns);
    db.prepare('UPDATE partitions SET next = next + 3 WHERE slot = ?').run(slot);
    db.exec('COMMIT');
    db.close();
    expect((await waiting).records.length).toBeGreaterThan(0);
    await log.append(EVENTS, [record('after')]);
    const { records } = await log.read(EVENTS, 0);
    const shown = records.map(({ offset, timestampMs, key, value, headers }) => [
      offset,
      offset === 0 || offset === 4 ? 'now' : timestampMs,
      key === null ? null : Buffer.from(key).toString(),
      value === null ? null : Buffer.from(value).toString(),
      headers[0]?.[0] ?? null,
    ]);
    expect(shown).toEqual([
      [0, 'now', 'k', 'before', 'type'],
      [1, 1, 'key', 'value', 'v'],
      [2, Number.MAX_SAFE_INTEGER, '5.0', '1.5', 'v'],
      [3, 0, null, null, null],
      [4, 'now', 'k', 'after', 'type'],
    ]);
  });

  it('[LOG-FILE-READABLE] stock SQLite shows records as text, by topic, partition and offset', async () => {
    const { log } = await scratch.open();
    const ref = { topic: 'events', partition: 3 } as const;
    await log.append(ref, [record('one', 'session-1'), record('{"two":2}', 'session-1')]);
    await log.close();
    const db = new DatabaseSync(scratch.file, { readOnly: true });
    const rows = db.prepare('SELECT topic, partition, "offset", key, value FROM readable').all();
    db.close();
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { topic: 'events', partition: 3, offset: 0, key: 'session-1', value: 'one' },
      { topic: 'events', partition: 3, offset: 1, key: 'session-1', value: '{"two":2}' },
    ]);
  });
});

describe('sqlite log: room', () => {
  it('[LOG-SIZE-CAP] at the size cap appends are refused, reading goes on, the file keeps its size, and eviction makes room', async () => {
    const maxBytes = 1024 * 1024;
    const { log, controls } = await scratch.open({ maxBytes });
    const big = record('x'.repeat(50_000));
    let refusal: unknown = null;
    let acked = 0;
    while (refusal === null && acked < 100)
      await log.append(EVENTS, [big]).then(
        () => acked++,
        (error: unknown) => {
          refusal = error;
        },
      );
    expect(refusal).toMatchObject({ code: 'APPEND_REFUSED', details: { reason: 'size-cap' } });
    expect(acked).toBeGreaterThan(10);
    expect((await log.bounds(EVENTS)).end).toBe(acked);
    expect((await log.read(EVENTS, acked - 1)).records).toHaveLength(1);
    await controls.evictBefore(EVENTS, acked - 2);
    expect((await log.append(EVENTS, [big])).offsets).toEqual([acked]);
    await log.close();
    expect(statSync(scratch.file).size).toBeLessThanOrEqual(maxBytes);
  });

  it('[LOG-DISK-FULL] on a full disk appends are refused as such and reading goes on', async () => {
    const { log, controls } = await scratch.open({ maxBytes: 64 * 1024 * 1024 });
    await log.append(EVENTS, [record('a')]);
    await controls.inject('disk-full');
    await expect(log.append(EVENTS, [record('b')])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'disk-full' },
    });
    expect(await offsetsOf(log, EVENTS)).toEqual([0]);
  });

  it('[LOG-QUEUE-BOUND] appends beyond the bound of the queue are refused, and the others are all in the log', async () => {
    const { log } = await scratch.open({ maxQueuedBytes: 100_000 });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => log.append(EVENTS, [record(`${index}`.padEnd(10_000, '.'))])),
    );
    const acked = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.offsets : []));
    expect(acked.length).toBeGreaterThanOrEqual(9);
    expect(acked.length).toBeLessThan(50);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'APPEND_REFUSED' });
    expect(await offsetsOf(log, EVENTS)).toEqual(acked);
    expect((await log.append(EVENTS, [record('x'.repeat(500_000))])).offsets).toEqual([acked.length]);
  });

  it('[LOG-BUSY] an append that other processes keep from writing is refused in time, or written when they let go', async () => {
    const { log } = await scratch.open({ busyMs: 150 });
    const db = new DatabaseSync(scratch.file);
    db.exec('BEGIN IMMEDIATE');
    const refused = log.append(EVENTS, [record('refused')]);
    await expect(refused).rejects.toMatchObject({ code: 'APPEND_REFUSED', details: { reason: 'other' } });
    expect(await log.bounds(EVENTS)).toEqual({ start: 0, end: 0 });
    const patient = await scratch.open();
    const written = patient.log.append(EVENTS, [record('written')]);
    await sleep(systemClock, 50);
    expect((await patient.log.read(EVENTS, 0)).records).toEqual([]);
    db.exec('ROLLBACK');
    db.close();
    expect((await written).offsets).toEqual([0]);
  });

  it('[LOG-CLOSE] closing while another process keeps the write lock refuses what waits, in bounded time', async () => {
    const { log } = await scratch.open();
    const db = new DatabaseSync(scratch.file);
    db.exec('BEGIN IMMEDIATE');
    const waiting = expect(log.append(EVENTS, [record('a')])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'closed' },
    });
    await sleep(systemClock, 30);
    const startedMs = systemClock.monoMs();
    await log.close();
    expect(systemClock.monoMs() - startedMs).toBeLessThan(6000);
    await waiting;
    db.exec('ROLLBACK');
    db.close();
    expect((await (await scratch.open()).log.bounds(EVENTS)).end).toBe(0);
  });
});

describe('sqlite log: time', () => {
  it('[LOG-RETENTION] what is older than retention is evicted, and nothing younger, nor on compacted topics', async () => {
    const clock = calendar(1_000_000);
    const { log, controls } = await scratch.open({ clock, retentionMs: 10_000 });
    const reader = await scratch.open({ clock, retentionMs: 10_000 });
    for (let index = 0; index < 100; index++) await log.append(EVENTS, [record(`old ${index}`)]);
    await log.append(META, [record('kept')]);
    clock.wall += 10_000;
    await log.append(EVENTS, [record('young')]);
    await controls.sweep();
    expect(await log.bounds(EVENTS)).toEqual({ start: 0, end: 101 });
    clock.wall += 1;
    await controls.sweep();
    expect(await log.bounds(EVENTS)).toEqual({ start: 100, end: 101 });
    expect(await offsetsOf(reader.log, EVENTS)).toEqual([100]);
    expect(await offsetsOf(log, META)).toEqual([0]);
    clock.wall += 1_000_000;
    await controls.sweep();
    expect(await log.bounds(EVENTS)).toEqual({ start: 101, end: 101 });
  });

  it('[LOG-RETENTION] it is swept without being asked', async () => {
    const clock = calendar(1_000_000);
    const { log } = await scratch.open({ clock, retentionMs: 2000 });
    await log.append(EVENTS, [record('old')]);
    clock.wall += 2001;
    await eventually(systemClock, 'the record is evicted', async () => (await log.bounds(EVENTS)).start === 1);
  });

  it('[LOG-TIMESTAMP] a wall clock that is set back does not take timestamps back, also after opening again', async () => {
    const clock = calendar(5000);
    const first = await scratch.open({ clock });
    await first.log.append(EVENTS, [record('a')]);
    await first.log.close();
    clock.wall = 1000;
    const { log } = await scratch.open({ clock });
    expect((await log.append(EVENTS, [record('b')])).timestampMs).toBe(5000);
    clock.wall = 6000;
    expect((await log.append(EVENTS, [record('c')])).timestampMs).toBe(6000);
  });

  it('[LOG-COMPACT-GRACE] superseded records stay for the grace and go after it', async () => {
    const clock = calendar(1_000_000);
    const { log } = await scratch.open({ clock, compactionGraceMs: 5000, retentionMs: 5000 });
    await log.append(META, [record('1', 'a'), record('1', 'b'), record('2', 'a')]);
    clock.wall += 4000;
    await sleep(systemClock, 600);
    expect(await offsetsOf(log, META)).toEqual([0, 1, 2]);
    clock.wall += 1000;
    await eventually(systemClock, 'compaction', async () => (await offsetsOf(log, META)).join() === '1,2');
  });

  it('[LOG-COMPACT-TOMBSTONE] a tombstone goes when it is older than retention, and a key that came back stays', async () => {
    const clock = calendar(1_000_000);
    const { log, controls } = await scratch.open({ clock, retentionMs: 10_000 });
    await log.append(META, [
      record('1', 'a'),
      record('1', 'b'),
      record(null, 'a'),
      record(null, 'b'),
      record('2', 'b'),
    ]);
    await controls.sweep();
    expect(await offsetsOf(log, META)).toEqual([2, 4]);
    clock.wall += 10_001;
    await controls.sweep();
    expect(await offsetsOf(log, META)).toEqual([4]);
    expect((await log.append(META, [record('3', 'a')])).offsets).toEqual([5]);
    await controls.sweep();
    expect(await offsetsOf(log, META)).toEqual([4, 5]);
    expect((await log.read(META, 0)).records.map(({ offset }) => offset)).toEqual([4, 5]);
    await log.append(META, [record(null, 'a'), record(null, 'b')]);
    clock.wall += 10_001;
    await controls.sweep();
    await log.close();
    // Keys that are gone leave nothing behind, or a log with many short sessions would grow for ever.
    const db = new DatabaseSync(scratch.file, { readOnly: true });
    const left = db.prepare('SELECT (SELECT count(*) FROM newest) + (SELECT count(*) FROM garbage) AS count').get();
    db.close();
    expect(left).toMatchObject({ count: 0 });
  });

  it('[LOG-EVICTED] a process that waits at the end learns that others evicted what it has in memory', async () => {
    const [here, there] = [await scratch.open(), await scratch.open()];
    // From its first wait in earnest on, what this process appends is kept in memory for its readers.
    expect((await here.log.read(EVENTS, 0, { waitMs: 300 })).records).toEqual([]);
    await here.log.append(EVENTS, [record('a'), record('b')]);
    expect((await here.log.read(EVENTS, 0)).records).toHaveLength(2);
    const signal = AbortSignal.timeout(10_000);
    const idle = expect(here.log.read(EVENTS, 2, { waitMs: 60_000, signal })).rejects.toThrow();
    await there.controls.evictBefore(EVENTS, 1);
    await eventually(systemClock, 'offset 0 is refused', async () =>
      here.log.read(EVENTS, 0).then(
        () => false,
        (error: unknown) => hasLogCode(error, 'OFFSET_OUT_OF_RANGE'),
      ),
    );
    await here.log.close();
    await idle;
  });

  it('[LOG-GROUP-LEAVE] closing a log leaves its groups at once, without waiting for the lease', async () => {
    const [here, there] = [await scratch.open({ leaseMs: 60_000 }), await scratch.open({ leaseMs: 60_000 })];
    await there.log.join({ group: 'g', member: 'b', onChange: () => undefined });
    const seat = await here.log.join({ group: 'g', member: 'a', onChange: () => undefined });
    expect(seat.assigned()).toEqual([2, 3]);
    await there.log.close();
    await eventually(systemClock, 'the other has all', () => seat.assigned().length === 4);
  });

  it('[LOG-GROUP-LEASE] a member left by a process that died long ago is no obstacle to the next one', async () => {
    const clock = calendar(1_000_000);
    const before = await scratch.open({ clock, leaseMs: 60_000 });
    await before.log.join({ group: 'g', member: 'dead', onChange: () => undefined });
    await before.controls.crash();
    clock.wall += 60_001;
    const { log } = await scratch.open({ clock, leaseMs: 60_000 });
    const seat = await log.join({ group: 'g', member: 'next', onChange: () => undefined });
    expect(seat.assigned()).toEqual([0, 1, 2, 3]);
  });
});
