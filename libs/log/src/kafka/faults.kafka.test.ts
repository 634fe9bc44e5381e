/** What a broker goes through, on one of our own. */
import process from 'node:process';
import type { Offset } from '@throughline/protocol';
import type { LocalKafka } from '@throughline/testkit/kafka';
import { startLocalKafka, TEST_BROKER } from '@throughline/testkit/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleep } from '../clock.ts';
import { endOf, readAll, textOf, textRecord } from '../conformance/records.ts';
import { hasLogCode } from '../errors.ts';
import type { Log, PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

describe.skipIf(brokersForTests() === null || process.env['KAFKA_BROKERS'] !== undefined)('kafka faults', () => {
  let kafka: LocalKafka;
  let bench: KafkaBench;
  beforeAll(async () => {
    kafka = await startLocalKafka({ overrides: TEST_BROKER });
    bench = await openKafkaBench(kafka.brokers);
  });
  afterEach(() => bench.closeLogs());
  afterAll(async () => {
    await bench.dispose();
    await kafka.stop();
  });

  it(
    '[KAFKA-RESTART] through a pause, a kill and a stop of the broker under load nothing acknowledged is lost, repeated or out of order',
    { timeout: 150_000 },
    async () => {
      const log = await bench.open({ readTimeoutMs: 60_000 });
      const refs = [0, 1].map((partition): PartitionRef => ({ topic: 'events', partition }));
      const starts = await Promise.all(refs.map((ref) => endOf(log, ref)));
      const stop = new AbortController();
      const acked = refs.map((): [Offset, string][] => []);
      const refused: string[] = [];
      const write = async (index: number): Promise<void> => {
        for (let count = 0; !stop.signal.aborted; count++) {
          const value = `${index}:${count}`;
          try {
            const { offsets } = await log.append(refs[index]!, [textRecord(value)]);
            acked[index]!.push([offsets[0]!, value]);
          } catch (error) {
            if (hasLogCode(error, 'APPEND_REFUSED')) refused.push(value);
            else if (!hasLogCode(error, 'APPEND_UNKNOWN')) throw error;
          }
          await sleep(systemClock, 5);
        }
      };
      const followed = refs.map((): [Offset, string][] => []);
      const follow = async (index: number, reader: Log): Promise<void> => {
        for (let at = starts[index]!; !stop.signal.aborted;) {
          const batch = await reader.read(refs[index]!, at, { waitMs: 1000 });
          followed[index]!.push(...batch.records.map((record): [Offset, string] => [record.offset, textOf(record)]));
          at = batch.next;
        }
      };
      const reader = await bench.open({ readTimeoutMs: 60_000 });
      const work = Promise.all([write(0), write(1), follow(0, reader), follow(1, reader)]);
      const count = (): number => acked.reduce((sum, list) => sum + list.length, 0);
      const progress = async (): Promise<void> => {
        const before = count();
        for (const untilMs = systemClock.monoMs() + 60_000; count() < before + 60;) {
          if (systemClock.monoMs() > untilMs) throw new Error('no progress within 60 s');
          await sleep(systemClock, 20);
        }
      };
      await progress();
      kafka.pause();
      await sleep(systemClock, 2000);
      kafka.resume();
      await progress();
      await kafka.kill();
      await kafka.restart();
      await progress();
      await kafka.restart();
      await progress();
      stop.abort();
      await work;
      for (const [index, ref] of refs.entries()) {
        const read = (await readAll(log, ref, starts[index]!)).map((record): [Offset, string] => [
          record.offset,
          textOf(record),
        ]);
        const values = read.map(([, value]) => value);
        expect(new Set(values).size).toBe(values.length);
        // Each ack is where it was said to be, and acks are in the order of their appends.
        expect(read.filter(([, value]) => acked[index]!.some(([, other]) => other === value))).toEqual(acked[index]);
        expect(values.filter((value) => refused.includes(value))).toEqual([]);
        expect(followed[index]).toEqual(read.slice(0, followed[index]!.length));
      }
    },
  );

  it(
    '[KAFKA-RESTART] members keep their partitions while the broker is away, and the group goes on after it',
    { timeout: 90_000 },
    async () => {
      const log = await bench.open({ sessionTimeoutMs: 3000 });
      const changes: (readonly number[])[] = [];
      const group = `${bench.prefix}-restart`;
      const seat = await log.join({ group, member: 'a', onChange: (assigned) => changes.push(assigned) });
      expect(seat.assigned()).toEqual([0, 1, 2, 3]);
      await kafka.restart();
      expect(seat.assigned()).toEqual([0, 1, 2, 3]);
      const other = await bench.open({ sessionTimeoutMs: 3000 });
      const second = await other.join({ group, member: 'b', onChange: () => undefined });
      for (
        const untilMs = systemClock.monoMs() + 20_000;
        seat.assigned().length !== 2 && systemClock.monoMs() < untilMs;
      )
        await sleep(systemClock, 20);
      expect([...seat.assigned(), ...second.assigned()].sort()).toEqual([0, 1, 2, 3]);
      expect(changes.every((assigned) => assigned.length > 0)).toBe(true);
    },
  );
});
