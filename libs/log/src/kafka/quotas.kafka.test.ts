/** Quotas by `client.id`, set as docs/operations/security-kafka.md says. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { LocalKafka } from '@throughline/testkit/kafka';
import { startLocalKafka, TEST_BROKER, writeKafkaScripts } from '@throughline/testkit/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { endOf, readAll, textOf, textRecord } from '../conformance/records.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import type { KafkaLog, KafkaLogEvent } from './index.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const PAGE = readFileSync(new URL('../../../../docs/operations/security-kafka.md', import.meta.url), 'utf8');
const LIMITED = 'throughline-gateway';
const FREE = 'throughline-worker';
const WRITE_RATE = 20_000;
const READ_RATE = 200_000;
const events = (partition: number): PartitionRef => ({ topic: 'events', partition });

describe.skipIf(brokersForTests() === null || process.env['KAFKA_BROKERS'] !== undefined)('kafka quotas', () => {
  let kafka: LocalKafka;
  let bench: KafkaBench;
  beforeAll(async () => {
    kafka = await startLocalKafka({ overrides: TEST_BROKER });
    bench = await openKafkaBench(kafka.brokers);
    const [command = ''] = /^kafka-configs\.sh .*--entity-type clients.*$/m.exec(PAGE) ?? [];
    expect(command).toContain(`--entity-name ${LIMITED} `);
    const limited = command
      .replace('kafka.example:9092', kafka.brokers[0]!)
      .replace(/producer_byte_rate=\d+/, `producer_byte_rate=${WRITE_RATE}`)
      .replace(/consumer_byte_rate=\d+/, `consumer_byte_rate=${READ_RATE}`);
    const folder = mkdtempSync(path.join(tmpdir(), 'throughline-scripts-'));
    writeKafkaScripts(kafka.jars, folder);
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    await promisify(execFile)('sh', ['-eu', '-c', `: > admin.properties\n${limited}`], { cwd: folder, env });
    rmSync(folder, { recursive: true });
  }, 240_000);
  afterEach(() => bench.closeLogs());
  afterAll(async () => {
    await bench.dispose();
    await kafka.stop();
  });

  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const startedMs = systemClock.monoMs();
    await work();
    return systemClock.monoMs() - startedMs;
  };
  /** A log of the limited role on four connections for appends, and how long the broker asked it to wait last. */
  const openLimited = async (more = {}): Promise<{ log: KafkaLog; askedMs(): number }> => {
    let asked = 0;
    const onLog = ({ message, fields }: KafkaLogEvent): void => {
      if (message.includes('quota')) asked = Number(fields['ms']);
    };
    const log = await bench.open({ clientId: LIMITED, onLog, ...more });
    // What a test before this one used up may refuse some.
    await Promise.allSettled([0, 1, 2, 3].map((partition) => log.append(events(partition), [textRecord('warm')])));
    asked = 0;
    return { log, askedMs: () => asked };
  };

  it(
    '[KAFKA-QUOTA] a role whose quota is used up sends nothing to the broker for as long as it asked, on any connection, and loses nothing; the other role notices nothing',
    { timeout: 120_000 },
    async () => {
      const { log, askedMs } = await openLimited({ appendTimeoutMs: 60_000 });
      const free = await bench.open({ clientId: FREE });
      const starts = await Promise.all([0, 1, 2, 3].map((partition) => endOf(log, events(partition))));
      await log.append(events(0), [textRecord('x'.repeat(18 * WRITE_RATE))]);
      const ms = askedMs();
      expect(ms).toBeGreaterThan(1000);
      const others = Promise.all(
        [1, 2, 3].map((partition) => timed(() => log.append(events(partition), [textRecord('small')]))),
      );
      expect(await timed(() => free.append(events(0), [textRecord('y'.repeat(18 * WRITE_RATE))]))).toBeLessThan(1000);
      for (const took of await others) expect(took).toBeGreaterThan(ms - 300);
      for (const partition of [1, 2, 3])
        expect((await readAll(free, events(partition), starts[partition]!)).map(textOf)).toEqual(['small']);
      expect(bench.controls(log).connections().producers).toBeLessThan(5);
    },
  );

  it(
    '[KAFKA-QUOTA] an append that a quota would hold beyond its deadline is refused without being sent',
    { timeout: 120_000 },
    async () => {
      const { log, askedMs } = await openLimited({ appendTimeoutMs: 1000 });
      const from = await endOf(log, events(1));
      while (askedMs() < 2500)
        await log.append(events(0), [textRecord('x'.repeat(10 * WRITE_RATE))]).catch(() => undefined);
      const took = await timed(() =>
        expect(log.append(events(1), [textRecord('late')])).rejects.toMatchObject({
          code: 'APPEND_REFUSED',
          details: { reason: 'other' },
          message: expect.stringContaining('quota') as string,
        }),
      );
      expect(took).toBeLessThan(1500);
      const free = await bench.open({ clientId: FREE });
      expect(await readAll(free, events(1), from)).toEqual([]);
    },
  );

  it(
    '[KAFKA-QUOTA] a reader whose quota is used up gets every record, late, and is never told that the log ends before its end',
    { timeout: 120_000 },
    async () => {
      const free = await bench.open({ clientId: FREE });
      const from = await endOf(free, events(2));
      const values = Array.from({ length: 24 }, (_, index) => `${index} ${'z'.repeat(50_000)}`);
      for (const value of values) await free.append(events(2), [textRecord(value)]);
      const end = from + values.length;
      const readTo = async (log: KafkaLog, waitMs: number): Promise<string[]> => {
        const read: string[] = [];
        for (let at = from; at < end;) {
          const batch = await log.read(events(2), at, { maxBytes: 100_000, waitMs });
          expect(batch.bounds).toEqual({ start: 0, end });
          read.push(...batch.records.map(textOf));
          at = batch.next;
        }
        return read;
      };
      const log = await bench.open({ clientId: LIMITED, readTimeoutMs: 1000 });
      const limitedMs = await timed(async () => {
        expect(await readTo(log, 0)).toEqual(values);
        expect(await readTo(log, 2000)).toEqual(values);
      });
      const freeMs = await timed(async () => {
        expect(await readTo(free, 0)).toEqual(values);
      });
      expect(limitedMs).toBeGreaterThan(5000);
      expect(freeMs).toBeLessThan(limitedMs / 3);
    },
  );
});
