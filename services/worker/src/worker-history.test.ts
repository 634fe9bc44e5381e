/** A worker on a log whose history breaks: it proves it by its own appends, and tells how far it had come. */
import { decodeText } from '@throughline/protocol';
import { silentLogger } from '@throughline/telemetry';
import type { Logger } from '@throughline/telemetry';
import { headerOf } from '@throughline/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf } from './testing/messages.ts';
import { EVENTS, INBOUND, META, openBench } from './testing/worker-bench.ts';
import type { Bench, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400, drainMs: 2000 } };
const epochs = (): { token: string; reason: string }[] =>
  bench
    .records(META)
    .filter(({ key }) => decodeText(key!).startsWith('epoch/'))
    .map(({ value }) => JSON.parse(decodeText(value!)) as { token: string; reason: string });
const markOf = (topic: string): { end: number; anchor?: { offset: number } } | null => {
  const key = `mark/${bench.epoch()}/${topic}/0`;
  const newest = bench.records(META).findLast((record) => decodeText(record.key!) === key);
  return newest === undefined ? null : (JSON.parse(decodeText(newest.value!)) as { end: number });
};
describe('marks', () => {
  it('[WRK-MARKS] within seconds, and when it stops, an owner has told up to where both topics were acknowledged', async () => {
    bench = await openBench(1);
    const { worker } = await bench.start(QUICK);
    await bench.open('k');
    await bench.time.advance(4000);
    const ends = async (): Promise<unknown[]> => [
      (await bench.log.bounds(INBOUND)).end,
      (await bench.log.bounds(EVENTS)).end,
    ];
    const told = (): unknown[] => [markOf('inbound')?.end, markOf('events')?.end];
    await bench.time.advance(2000);
    expect(markOf('inbound')).toMatchObject({ end: 2, anchor: { offset: 1 } });
    await bench.ended(await bench.call('k', 1, 'effect'));
    await bench.time.run(worker.stop());
    expect(told()).toEqual(await ends());
    const count = bench.records(META).length;
    await bench.time.advance(20_000);
    expect(bench.records(META)).toHaveLength(count);
  });

  it('[WRK-MARKS] what does not change is not told again', async () => {
    bench = await openBench(2);
    await bench.start(QUICK);
    await bench.time.advance(10_000);
    const marks = (): number => bench.records(META).filter(({ key }) => decodeText(key!).startsWith('mark/')).length;
    const before = marks();
    await bench.time.advance(30_000);
    expect(marks()).toBe(before);
  });
});

describe('a broken history', () => {
  it('[WRK-BREAK] an answer that is acknowledged below what the owner had read is proof at once', async () => {
    bench = await openBench(3);
    await bench.start(QUICK);
    await bench.open('k');
    await bench.call('k', 1, 'lookup', { ms: 50 });
    await bench.time.advance(20);
    bench.store.controls.truncate(EVENTS, 2);
    const brokenMs = bench.time.nowMs();
    await bench.until(() => epochs().length === 2, 1000);
    // Sooner than any suspicion would be looked into.
    expect(bench.time.nowMs() - brokenMs).toBeLessThan(200);
    expect(epochs()[1]?.reason).toMatch(/^events\/0: acknowledged \d+ at or below \d+$/);
  });

  it('[WRK-BREAK] inbound made anew alone: nobody calls, and it is found out', async () => {
    bench = await openBench(4);
    const { worker } = await bench.start(QUICK);
    await bench.open('k');
    await bench.time.advance(3000);
    bench.store.controls.recreate('inbound');
    await bench.until(() => epochs().length === 2, 10_000);
    await bench.until(() => worker.owned().length === 1, 10_000);
    // The new history is served from its own beginning.
    await bench.open('l');
    expect((await bench.ended(await bench.call('l', 1, 'effect'))).messages).toHaveLength(1);
    await bench.time.advance(20_000);
    expect(epochs()).toHaveLength(2);
  });

  it.each([
    ['events', (): void => bench.store.controls.recreate('events')],
    ['inbound', (): void => bench.store.controls.recreate('inbound')],
    ['half of events', (): void => bench.store.controls.truncate(EVENTS, 2)],
  ] as const)(
    '[WRK-BREAK] %s lost while nobody ran: the next worker proves it before it serves',
    async (_, breakIt) => {
      bench = await openBench(5);
      const { worker } = await bench.start(QUICK);
      await bench.open('k');
      await bench.ended(await bench.call('k', 1, 'effect', { token: 'once' }));
      await bench.time.run(worker.stop());
      breakIt();
      const next = await bench.start(QUICK);
      await bench.until(() => next.worker.owned().length === 1, 20_000);
      expect(epochs()).toHaveLength(2);
      await bench.open('l');
      expect(bench.runs.map(({ token }) => token)).toEqual(['once']);
      expect(
        errorOf((await bench.ended(await bench.call('k', 2, 'effect', { token: 'late' }))).messages[0]),
      ).toMatchObject({
        code: 'SESSION_ENDED',
      });
    },
  );

  it('[WRK-BREAK] inbound that is lost between the claim and the take-over is a doubt until it is proved, no fault of the worker', async () => {
    bench = await openBench(7);
    const { worker } = await bench.start(QUICK);
    await bench.open('k');
    await bench.time.run(worker.stop());
    const lines: string[] = [];
    const note =
      (level: string) =>
      (event: string): void => {
        lines.push(`${level} ${event}`);
      };
    const logger: Logger = { ...silentLogger, warn: note('warn'), error: note('error'), child: () => logger };
    let hasToldClaim = false;
    let isLost = false;
    const { worker: next } = await bench.start({
      ...QUICK,
      logger,
      wrap: (log) => ({
        ...log,
        append(to, records) {
          hasToldClaim ||= records.some((record) => headerOf(record, 'type') === 'checkpoint');
          return log.append(to, records);
        },
        bounds(of) {
          if (hasToldClaim && !isLost && of.topic === 'inbound') {
            isLost = true;
            bench.store.controls.recreate('inbound');
          }
          return log.bounds(of);
        },
      }),
    });
    await bench.until(() => next.owned().length === 1, 20_000);
    expect(isLost).toBe(true);
    expect(lines).toContain('warn partition failed; claiming it again');
    expect(lines.filter((line) => line.startsWith('error') && !line.includes('the history of the log broke'))).toEqual(
      [],
    );
    expect(epochs()).toHaveLength(2);
  });

  it('[WRK-BREAK] a crash of all workers breaks nothing', async () => {
    bench = await openBench(6);
    for (let time = 0; time < 3; time++) {
      const worker = await bench.start(QUICK);
      await bench.open(`k${time}`);
      await bench.time.advance(700);
      worker.crash();
    }
    await bench.time.advance(20_000);
    expect(epochs()).toHaveLength(1);
  });
});
