import { expect, it } from 'vitest';
import type { GetBench } from './harness.ts';
import { endOf, EVENTS, readAll, showRecord, textOf, textRecord } from './records.ts';

export function retentionCases(bench: GetBench): void {
  it('[LOG-DURABLE] after all handles were closed, the log is there with the same records, bounds and id', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (!harness.isDurable) skip('lives in memory');
    const from = await endOf(log, EVENTS);
    for (let index = 0; index < 10; index++) await log.append(EVENTS, [textRecord(`kept ${index}`)]);
    const before = { bounds: await log.bounds(EVENTS), records: (await readAll(log, EVENTS, from)).map(showRecord) };
    await log.close();
    const again = await harness.open();
    expect(again.description).toEqual(log.description);
    expect({
      bounds: await again.bounds(EVENTS),
      records: (await readAll(again, EVENTS, from)).map(showRecord),
    }).toEqual(before);
    const { offsets } = await again.append(EVENTS, [textRecord('after')]);
    expect(offsets[0]).toBeGreaterThanOrEqual(before.bounds.end);
  });

  it('[LOG-EVICTED] a position that was evicted is refused with the bounds; the reader is not moved on in silence', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.evict === undefined) return skip('no eviction');
    const other = await harness.open();
    const { offsets } = await log.append(
      EVENTS,
      ['a', 'b', 'c', 'd'].map((value) => textRecord(value)),
    );
    await readAll(other, EVENTS, offsets[0]!);
    await harness.evict(EVENTS, offsets[2]!);
    for (const handle of [log, other]) {
      const bounds = await handle.bounds(EVENTS);
      expect(bounds).toEqual({ start: offsets[2], end: offsets[3]! + 1 });
      for (const position of [offsets[0]!, offsets[1]!])
        for (const waitMs of [0, 2000])
          await expect(handle.read(EVENTS, position, { waitMs })).rejects.toMatchObject({
            code: 'OFFSET_OUT_OF_RANGE',
            details: bounds,
          });
      expect((await handle.read(EVENTS, offsets[2]!)).records.map(textOf)).toEqual(['c', 'd']);
    }
  });

  it('[LOG-EVICTED] a reader that falls behind eviction while it reads is told so', async ({ skip }) => {
    const { harness, log } = bench();
    if (harness.evict === undefined) return skip('no eviction');
    const from = await endOf(log, EVENTS);
    const reader = await harness.open();
    await log.append(EVENTS, [textRecord('a'), textRecord('b'), textRecord('c')]);
    const first = await reader.read(EVENTS, from, { maxBytes: 1 });
    expect(first.records.map(textOf)).toEqual(['a']);
    await harness.evict(EVENTS, first.next + 1);
    await expect(reader.read(EVENTS, first.next, { waitMs: 2000 })).rejects.toMatchObject({
      code: 'OFFSET_OUT_OF_RANGE',
    });
  });

  it('[LOG-NO-REUSE] offsets are not given again after everything was evicted, nor after opening again', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.evict === undefined) return skip('no eviction');
    const { offsets } = await log.append(EVENTS, [textRecord('a'), textRecord('b')]);
    const end = offsets[1]! + 1;
    await harness.evict(EVENTS, end);
    expect(await log.bounds(EVENTS)).toEqual({ start: end, end });
    let handle = log;
    if (harness.isDurable) {
      await log.close();
      handle = await harness.open();
      expect(await handle.bounds(EVENTS)).toEqual({ start: end, end });
    }
    const next = await handle.append(EVENTS, [textRecord('c')]);
    expect(next.offsets[0]).toBeGreaterThanOrEqual(end);
    expect((await readAll(handle, EVENTS, end)).map(textOf)).toEqual(['c']);
  });
}
