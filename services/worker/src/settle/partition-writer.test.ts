import { LogError } from '@throughline/log';
import type { Log } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import type { MemoryLog } from '@throughline/log/memory';
import { decodeText, encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { PartitionWriter, QUEUE_BYTES } from './partition-writer.ts';
import { PRINCIPAL_BYTES, WaitingShares } from './waiting-shares.ts';

const record = (value: string | Uint8Array): RecordInput => ({
  key: encodeText('k'),
  value: typeof value === 'string' ? encodeText(value) : value,
  headers: [],
});

interface Made {
  readonly time: VirtualTime;
  readonly log: MemoryLog;
  readonly writer: PartitionWriter;
  readonly shares: WaitingShares;
  readonly lost: string[];
  readonly appends: () => readonly number[];
  values(): Promise<readonly string[]>;
}

function make(append?: (log: MemoryLog, ...args: Parameters<Log['append']>) => ReturnType<Log['append']>): Made {
  const time = createVirtualTime({ seed: 1 });
  const clock = time.clock();
  const log = createMemoryLog({ clock });
  const lost: string[] = [];
  const sizes: number[] = [];
  const wrapped: Log = {
    ...log,
    append: (to, records) => {
      sizes.push(records.length);
      return append === undefined ? log.append(to, records) : append(log, to, records);
    },
  };
  const shares = new WaitingShares();
  const writer = new PartitionWriter({
    log: wrapped,
    clock,
    partition: 0,
    deadlineMs: 1000,
    shares,
    principalOf: () => 'p',
    onLost: (reason) => lost.push(reason),
  });
  return {
    time,
    log,
    writer,
    shares,
    lost,
    appends: () => sizes,
    values: async () =>
      (await log.read({ topic: 'events', partition: 0 }, 0)).records.map(({ value }) => decodeText(value!)),
  };
}

describe('the writer of a partition', () => {
  it('[WRK-WRITER] appends in the order of the calls, what is made in one turn in one commit', async () => {
    const { time, writer, appends, values } = make();
    const offsets = ['a', 'b', 'c'].map((value) => writer.write(record(value)));
    expect(await time.run(Promise.all(offsets))).toEqual([0, 1, 2]);
    await time.run(writer.write(record('d')));
    expect([await values(), appends()]).toEqual([
      ['a', 'b', 'c', 'd'],
      [3, 1],
    ]);
  });

  it('[WRK-WRITER] tries a refused append again in its order, until it is taken', async () => {
    const { time, writer, log, lost, values } = make();
    log.failAppends('refused');
    const first = writer.write(record('a'));
    await time.advance(450);
    const second = writer.write(record('b'));
    log.failAppends(null);
    expect(await time.run(Promise.all([first, second]))).toEqual([0, 1]);
    expect([await values(), lost]).toEqual([['a', 'b'], []]);
  });

  it('[WRK-WRITER] gives up at the deadline, and writes nothing more', async () => {
    const { time, writer, log, lost, values } = make();
    log.failAppends('refused');
    const writes = [writer.write(record('a')), writer.write(record('b'))];
    await time.advance(1200);
    log.failAppends(null);
    writes.push(writer.write(record('c')));
    for (const write of writes) await expect(write).rejects.toMatchObject({ name: 'WriterStoppedError' });
    expect([lost.length, await values()]).toEqual([1, []]);
  });

  it.each(['unknown-stored', 'unknown-lost'] as const)(
    '[WRK-WRITER] never appends again after an unknown outcome (%s)',
    async (fault) => {
      const { time, writer, log, lost, appends } = make();
      log.failAppends(fault);
      const first = writer.write(record('a'));
      await time.settle();
      log.failAppends(null);
      await expect(first).rejects.toMatchObject({ name: 'WriterStoppedError' });
      await expect(writer.write(record('b'))).rejects.toMatchObject({ name: 'WriterStoppedError' });
      await time.advance(5000);
      expect([lost.length, appends()]).toEqual([1, [1]]);
    },
  );

  it('[WRK-WRITER] takes an append that is not answered in time for unknown', async () => {
    const { time, writer, lost } = make(() => new Promise(() => undefined));
    const first = writer.write(record('a'));
    await time.advance(1001);
    await expect(first).rejects.toMatchObject({ name: 'WriterStoppedError' });
    expect(lost).toHaveLength(1);
  });

  it('[WRK-WRITER] when it is stopped nothing waits any more', async () => {
    const { time, writer } = make((_log, _to, _records) => Promise.reject(new LogError('APPEND_REFUSED', 'no')));
    const first = writer.write(record('a'));
    await time.advance(150);
    writer.stop();
    await expect(time.run(first)).rejects.toMatchObject({ name: 'WriterStoppedError' });
    await time.run(writer.room());
  });

  it('[WRK-FLOOD] there is room as long as little waits, and again only when that has been written', async () => {
    const waiting: (() => void)[] = [];
    const { time, writer, shares } = make(async (log, to, records) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return log.append(to, records);
    });
    const megabyte = new Uint8Array(1024 * 1024);
    let rooms = 0;
    for (let count = 0; count < 12; count++) {
      void writer.write(record(megabyte), 's');
      void writer.room().then(() => rooms++);
    }
    await time.settle();
    const [before, held] = [rooms, shares.of('s')];
    expect([before, held > QUEUE_BYTES]).toEqual([7, true]);
    waiting.shift()?.();
    await time.settle();
    expect(rooms).toBe(7);
    for (let commit = 0; commit < 12; commit++) {
      waiting.shift()?.();
      await time.settle();
    }
    expect([rooms, shares.of('s')]).toEqual([12, 0]);
  });

  it('[WRK-FAIR] a session that was held up goes on when its records are in the log, and when the writer gives up', async () => {
    const waiting: (() => void)[] = [];
    const { time, writer, shares } = make(async (log, to, records) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return log.append(to, records);
    });
    let rooms = 0;
    const say = async (): Promise<void> => {
      void writer.write(record(new Uint8Array(PRINCIPAL_BYTES)), 's');
      void shares.room('s').then(() => rooms++);
      await time.settle();
    };
    await say();
    expect(rooms).toBe(0);
    waiting.shift()?.();
    await time.settle();
    expect([rooms, shares.of('s')]).toEqual([1, 0]);
    // One is on its way, and one waits behind it.
    await say();
    await say();
    expect(rooms).toBe(1);
    writer.stop();
    await time.settle();
    expect(shares.of('s')).toBeLessThan(2 * PRINCIPAL_BYTES);
    waiting.shift()?.();
    await time.settle();
    expect([rooms, shares.of('s')]).toEqual([3, 0]);
  });

  it('[WRK-WRITER] knows what fits into a record to the byte', () => {
    const { writer } = make();
    const max = 8 * 1024 * 1024;
    expect(writer.fits(record(new Uint8Array(max - 1)))).toBe(true);
    expect(writer.fits(record(new Uint8Array(max)))).toBe(false);
  });
});
