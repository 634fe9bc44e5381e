import type { LogRecord } from '@throughline/protocol';
import { expect, it } from 'vitest';
import { sleep } from '../clock.ts';
import type { Log } from '../port.ts';
import type { GetBench } from './harness.ts';
import { endOf, EVENTS, readAll, showRecord, textOf, textRecord } from './records.ts';

export function readCases(bench: GetBench): void {
  it('[LOG-REREAD] reading again from any position gives the records that were given before', async () => {
    const { harness, log } = bench();
    const from = await endOf(log, EVENTS);
    for (let index = 0; index < 30; index++)
      await log.append(EVENTS, [textRecord(`r${index}`), textRecord(`s${index}`)]);
    const whole = (await readAll(log, EVENTS, from)).map(showRecord);
    expect(whole).toHaveLength(60);
    const other = await harness.open();
    for (const [index, record] of (await readAll(other, EVENTS, from)).entries()) {
      const suffix = await readAll(index % 2 === 0 ? log : other, EVENTS, record.offset, 1 + index * 7);
      expect(suffix.map(showRecord)).toEqual(whole.slice(index));
    }
  });

  it('[LOG-READ-NEXT] next is above the last record and reading from it leaves nothing out and repeats nothing', async () => {
    const { log } = bench();
    const from = await endOf(log, EVENTS);
    for (let index = 0; index < 25; index++) await log.append(EVENTS, [textRecord(`value ${index}`)]);
    const seen: string[] = [];
    let at = from;
    const { end } = await log.bounds(EVENTS);
    while (at < end) {
      const batch = await log.read(EVENTS, at, { maxBytes: 40 });
      expect(batch.next).toBeGreaterThan(batch.records.at(-1)?.offset ?? at);
      expect(batch.bounds.end).toBeGreaterThanOrEqual(batch.next);
      seen.push(...batch.records.map(textOf));
      at = batch.next;
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => `value ${index}`));
  });

  it('[LOG-READ-BYTES] a batch holds no more than maxBytes but at least one record', async () => {
    const { log } = bench();
    const from = await endOf(log, EVENTS);
    const values = ['a'.repeat(1000), 'b'.repeat(1000), 'c'.repeat(50_000), 'd'.repeat(1000)];
    await log.append(
      EVENTS,
      values.map((value) => textRecord(value)),
    );
    const lengths: number[][] = [];
    let at = from;
    while (at < (await endOf(log, EVENTS))) {
      const batch = await log.read(EVENTS, at, { maxBytes: 2500 });
      lengths.push(batch.records.map((record) => record.value!.length));
      at = batch.next;
    }
    expect(lengths).toEqual([[1000, 1000], [50_000], [1000]]);
  });

  it('[LOG-READ-EMPTY] a read at the end without waiting is an empty batch at that position', async () => {
    const { log } = bench();
    await log.append(EVENTS, [textRecord('one')]);
    const end = await endOf(log, EVENTS);
    const batch = await log.read(EVENTS, end);
    expect(batch.records).toEqual([]);
    expect(batch.next).toBe(end);
    expect(batch.bounds.end).toBe(end);
  });

  it('[LOG-READ-WAIT] a waiting read returns an empty batch when its time is over, not before', async () => {
    const { harness, log } = bench();
    const end = await endOf(log, EVENTS);
    const startedMs = harness.clock.monoMs();
    const batch = await log.read(EVENTS, end, { waitMs: 120 });
    expect(batch.records).toEqual([]);
    expect(batch.next).toBe(end);
    // Timers of the platform may fire a millisecond early.
    expect(harness.clock.monoMs() - startedMs).toBeGreaterThanOrEqual(118);
  });

  it('[LOG-READ-WAIT] a waiting read returns as soon as any handle has appended', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    for (const writer of [log, other]) {
      const end = await endOf(log, EVENTS);
      const waiting = [log.read(EVENTS, end, { waitMs: 15_000 }), other.read(EVENTS, end, { waitMs: 15_000 })];
      await sleep(harness.clock, 20);
      const startedMs = harness.clock.monoMs();
      await writer.append(EVENTS, [textRecord('news')]);
      for (const batch of await Promise.all(waiting)) expect(batch.records.map(textOf)).toEqual(['news']);
      expect(harness.clock.monoMs() - startedMs).toBeLessThan(7500);
    }
  });

  it('[LOG-READ-TAIL] a reader that goes from catch-up to waiting while others append misses nothing and repeats nothing', async () => {
    const { harness, log } = bench();
    const writers = [log, await harness.open()];
    const readers = [...writers, await harness.open()];
    const from = await endOf(log, EVENTS);
    const total = 400;
    const write = async (writer: Log, who: number): Promise<void> => {
      for (let index = 0; index < total / 2; index++) {
        await writer.append(EVENTS, [textRecord(`${who}:${index} ${'x'.repeat(index % 90)}`)]);
        if (index % 40 === 39) await sleep(harness.clock, 12);
      }
    };
    const follow = async (reader: Log, maxBytes: number): Promise<LogRecord[]> => {
      const seen: LogRecord[] = [];
      let at = from;
      while (seen.length < total) {
        const batch = await reader.read(EVENTS, at, { waitMs: 5000, maxBytes });
        if (batch.records.length === 0) throw new Error(`nothing after ${seen.length} records`);
        seen.push(...batch.records);
        at = batch.next;
      }
      return seen;
    };
    const writing = writers.map(write);
    const followed = await Promise.all(readers.flatMap((reader) => [follow(reader, 150), follow(reader, 100_000)]));
    await Promise.all(writing);
    const truth = (await readAll(log, EVENTS, from)).map(showRecord);
    expect(truth).toHaveLength(total);
    for (const seen of followed) expect(seen.map(showRecord)).toEqual(truth);
  });

  it('[LOG-READ-ABORT] a waiting read rejects with ABORTED when its signal fires, and at once if it has fired', async () => {
    const { harness, log } = bench();
    const end = await endOf(log, EVENTS);
    const controller = new AbortController();
    const waiting = log.read(EVENTS, end, { waitMs: 60_000, signal: controller.signal });
    const outcome = expect(waiting).rejects.toMatchObject({ name: 'LogError', code: 'ABORTED' });
    await sleep(harness.clock, 15);
    controller.abort();
    await outcome;
    await expect(log.read(EVENTS, end, { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    await log.append(EVENTS, [textRecord('still there')]);
    expect((await log.read(EVENTS, end)).records.map(textOf)).toEqual(['still there']);
  });

  it('[LOG-BOUNDS] end is the offset after the last ack, for every handle', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    const { offsets } = await other.append(EVENTS, [textRecord('a'), textRecord('b')]);
    for (const handle of [log, other]) {
      const bounds = await handle.bounds(EVENTS);
      expect(bounds.end).toBe(offsets[1]! + 1);
      expect(bounds.start).toBeLessThanOrEqual(offsets[0]!);
    }
  });

  it('[LOG-BOUNDS] a batch that a waiting reader gets at the tail names the start of the log, not of what is in memory', async () => {
    const { harness, log } = bench();
    await log.append(EVENTS, [textRecord('old'), textRecord('older')]);
    const other = await harness.open();
    for (const reader of [log, other]) {
      const { start, end } = await reader.bounds(EVENTS);
      const waiting = reader.read(EVENTS, end, { waitMs: 15_000 });
      await sleep(harness.clock, 20);
      await log.append(EVENTS, [textRecord('news')]);
      const batch = await waiting;
      expect(batch.records.map(textOf)).toEqual(['news']);
      expect(batch.bounds).toEqual({ start, end: end + 1 });
    }
  });

  it('[LOG-OUT-OF-RANGE] a read above the end is refused with the bounds, waiting or not', async () => {
    const { log } = bench();
    await log.append(EVENTS, [textRecord('a')]);
    const { start, end } = await log.bounds(EVENTS);
    for (const waitMs of [0, 5000])
      for (const position of [end + 1, end + 1_000_000])
        await expect(log.read(EVENTS, position, { waitMs })).rejects.toMatchObject({
          code: 'OFFSET_OUT_OF_RANGE',
          details: { start, end },
        });
    await expect(log.read(EVENTS, -1)).rejects.toThrow(RangeError);
    await expect(log.read(EVENTS, 0.5)).rejects.toThrow(RangeError);
  });
}
