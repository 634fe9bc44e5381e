import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';
import { isDivided, take } from './group-seats.ts';
import type { GetBench } from './harness.ts';
import { textRecord } from './records.ts';

let groups = 0;

export function growthCases(bench: GetBench): void {
  it('[LOG-GROWN] partitions that are added are known to every handle: it is told, takes appends of them, and reads them from their start', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.grow === undefined) return skip('cannot grow');
    const other = await harness.open();
    const before = log.description.partitions;
    const told: number[] = [];
    const stop = other.onGrown(() => told.push(other.description.partitions));
    await expect(log.append({ topic: 'events', partition: before }, [textRecord('early')])).rejects.toBeInstanceOf(
      RangeError,
    );
    await harness.grow(before + 2);
    await eventually(
      harness.clock,
      'the log says so',
      async () => (await log.describe()).partitions === before + 2,
      harness.groupMs,
    );
    expect(log.description.partitions).toBe(before + 2);
    const added = { topic: 'events', partition: before + 1 } as const;
    const { offsets } = await log.append(added, [textRecord('first')]);
    await eventually(harness.clock, 'the listener is told', () => told.length > 0, harness.groupMs);
    expect(told).toEqual([before + 2]);
    const start = (await other.bounds(added)).start;
    const read = await other.read(added, start);
    expect(read.records.map(({ offset }) => offset)).toEqual([...offsets]);
    stop();
  });

  it('[LOG-GROWN] members of a group divide what was added, and keep what they had as far as their shares allow', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.grow === undefined) return skip('cannot grow');
    const group = `grown-${process.pid}-${++groups}`;
    const a = await take(log, group, 'a');
    const b = await take(await harness.open(), group, 'b');
    await eventually(harness.clock, 'a and b share', () => isDivided(log, [a, b]), harness.groupMs);
    const had = { a: [...a.told()], b: [...b.told()] };
    const before = log.description.partitions;
    await harness.grow(before + 2);
    await eventually(
      harness.clock,
      'they share all of it',
      () => log.description.partitions === before + 2 && isDivided(log, [a, b]),
      harness.groupMs,
    );
    expect(a.told()).toEqual(expect.arrayContaining(had.a));
    expect(b.told()).toEqual(expect.arrayContaining(had.b));
    for (const seat of [a, b]) await seat.membership.leave();
  });
}
