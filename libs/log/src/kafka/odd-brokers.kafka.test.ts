/** Brokers that are set up otherwise than one would wish. */
import process from 'node:process';
import { findFreePort } from '@throughline/testkit';
import { startLocalKafka, TEST_BROKER } from '@throughline/testkit/kafka';
import { describe, expect, it } from 'vitest';
import { endOf, textOf, textRecord } from '../conformance/records.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const brokers = brokersForTests();
const EVENTS: PartitionRef = { topic: 'events', partition: 0 };

describe.skipIf(brokers === null)('odd settings of topics', () => {
  it.each(['gzip', 'zstd'])(
    '[KAFKA-CODEC] where an administrator has the broker compress with %s, records are read as ever',
    async (codec) => {
      const bench = await openKafkaBench(brokers ?? []);
      await bench.set('events', { 'compression.type': codec });
      const log = await bench.open();
      const values = ['a', 'b', 'c'.repeat(10_000)];
      const { offsets } = await log.append(
        EVENTS,
        values.map((value) => textRecord(value)),
      );
      expect((await log.read(EVENTS, offsets[0]!)).records.map(textOf)).toEqual(values);
      expect((await log.read(EVENTS, offsets[2]!)).records.map(textOf)).toEqual(values.slice(2));
      await bench.dispose();
    },
  );

  it.each(['lz4', 'snappy'])(
    '[KAFKA-CODEC] where it compresses with %s, a read is refused at once, with the way out',
    async (codec) => {
      const bench = await openKafkaBench(brokers ?? []);
      await bench.set('events', { 'compression.type': codec });
      const log = await bench.open();
      const from = await endOf(log, EVENTS);
      await log.append(EVENTS, [textRecord('x'.repeat(10_000))]);
      await expect(log.read(EVENTS, from)).rejects.toMatchObject({
        code: 'LOG_INCOMPATIBLE',
        message: expect.stringMatching(new RegExp(`${codec}.*compression\\.type=uncompressed`)) as string,
        details: { cure: 'apply-topics' },
      });
      await bench.dispose();
    },
  );

  it('[KAFKA-DESCRIBE] a limit of records far above what anybody sends is no limit to anything else', async () => {
    const bench = await openKafkaBench(brokers ?? [], { maxMessageBytes: 2 ** 31 - 1 });
    const log = await bench.open();
    const { offsets } = await log.append(EVENTS, [textRecord('hello')]);
    expect((await log.read(EVENTS, offsets[0]!)).records.map(textOf)).toEqual(['hello']);
    await bench.dispose();
  });
});

describe.skipIf(brokers === null || process.env['KAFKA_BROKERS'] !== undefined)('unreachable listeners', () => {
  it('[KAFKA-HINT] brokers that advertise an address at which nobody listens are named with that address, in bounded time', async () => {
    const port = await findFreePort();
    const kafka = await startLocalKafka({
      port,
      overrides: {
        ...TEST_BROKER,
        'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOST:PLAINTEXT',
        'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},LOST://127.0.0.1:1`,
      },
      listeners: { LOST: 'PLAINTEXT' },
    });
    const bench = await openKafkaBench(kafka.brokers);
    const log = await bench.open({ brokers: kafka.listener('LOST'), readTimeoutMs: 1000, appendTimeoutMs: 2000 });
    const startedMs = systemClock.monoMs();
    const says = expect.stringMatching(/127\.0\.0\.1:1, .*advertised\.listeners/) as string;
    await expect(log.read(EVENTS, 0)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE', message: says });
    await expect(log.append(EVENTS, [textRecord('x')])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      message: says,
    });
    expect(systemClock.monoMs() - startedMs).toBeLessThan(15_000);
    await bench.dispose();
    await kafka.stop();
  }, 180_000);
});
