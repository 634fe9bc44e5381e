import { expect, it } from 'vitest';
import { sleep } from '../clock.ts';
import type { GetBench } from './harness.ts';
import { endOf, EVENTS, readAll, textOf, textRecord } from './records.ts';

export function faultCases(bench: GetBench): void {
  it('[LOG-REFUSED] a refused append is not in the log, reading goes on, and later appends succeed', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.failAppends === undefined) return skip('no faults');
    const from = await endOf(log, EVENTS);
    await log.append(EVENTS, [textRecord('before')]);
    await harness.failAppends(log, 'refused');
    await expect(log.append(EVENTS, [textRecord('refused')])).rejects.toMatchObject({ code: 'APPEND_REFUSED' });
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['before']);
    await harness.failAppends(log, null);
    await log.append(EVENTS, [textRecord('after')]);
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['before', 'after']);
  });

  it('[LOG-UNKNOWN] an append that ends unknown is in the log whole or not at all, once', async ({ skip }) => {
    const { harness, log } = bench();
    if (harness.failAppends === undefined) return skip('no faults');
    const from = await endOf(log, EVENTS);
    const waiting = log.read(EVENTS, from, { waitMs: 15_000 });
    await harness.failAppends(log, 'unknown-stored');
    await expect(log.append(EVENTS, [textRecord('s1'), textRecord('s2')])).rejects.toMatchObject({
      code: 'APPEND_UNKNOWN',
    });
    await harness.failAppends(log, 'unknown-lost');
    await expect(log.append(EVENTS, [textRecord('l1'), textRecord('l2')])).rejects.toMatchObject({
      code: 'APPEND_UNKNOWN',
    });
    await harness.failAppends(log, null);
    await log.append(EVENTS, [textRecord('after')]);
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['s1', 's2', 'after']);
    const first = await waiting;
    expect(first.records.map(textOf)).toEqual(['s1', 's2', 'after'].slice(0, first.records.length));
    expect((await readAll(log, EVENTS, first.next)).map(textOf)).toEqual(
      ['s1', 's2', 'after'].slice(first.records.length),
    );
  });

  it('[LOG-CLOSE] closing rejects waiting reads with CLOSED, leaves no append pending and lets other handles live', async () => {
    const { harness, log } = bench();
    const doomed = await harness.open();
    const from = await endOf(doomed, EVENTS);
    const idle = { topic: 'events', partition: 0 } as const;
    const reading = expect(doomed.read(idle, await endOf(doomed, idle), { waitMs: 600_000 })).rejects.toMatchObject({
      code: 'CLOSED',
    });
    await sleep(harness.clock, 10);
    const appending = Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => doomed.append(EVENTS, [textRecord(String(index))])),
    );
    const closing = doomed.close();
    await Promise.all([reading, closing, doomed.close()]);
    const outcomes = await appending;
    const acked = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.offsets : []));
    const codes = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [(outcome.reason as { code: string }).code] : [],
    );
    for (const code of codes) expect(['APPEND_REFUSED', 'APPEND_UNKNOWN']).toContain(code);
    const held = (await readAll(log, EVENTS, from)).map((record) => record.offset);
    expect(held).toEqual(expect.arrayContaining(acked));
    if (!codes.includes('APPEND_UNKNOWN')) expect(held).toHaveLength(acked.length);
    for (const call of [
      () => doomed.append(EVENTS, [textRecord('late')]),
      () => doomed.read(EVENTS, from),
      () => doomed.bounds(EVENTS),
      () => doomed.join({ group: 'late', member: 'late', onChange: () => undefined }),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'CLOSED' });
    await log.append(EVENTS, [textRecord('alive')]);
    expect((await readAll(log, EVENTS, from)).map(textOf).at(-1)).toBe('alive');
  });
}
