/** What is particular to Kafka, on a real broker that creates topics by itself when asked to. */
import { CompressionTypes, Partitioners } from 'kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleep } from '../clock.ts';
import { eventually } from '../conformance/eventually.ts';
import { endOf, readAll, textOf, textRecord } from '../conformance/records.ts';
import { hasLogCode } from '../errors.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { createClusterMap } from './cluster-map.ts';
import { openConnection } from './connection.ts';
import { openKafkaLog } from './index.ts';
import { KafkaFailure } from './kafka-failure.ts';
import { makeProducer } from './producer.ts';
import type { ProduceFault } from './producer.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const brokers = brokersForTests();
const EVENTS: PartitionRef = { topic: 'events', partition: 0 };
const OTHER: PartitionRef = { topic: 'events', partition: 1 };
const LOG_APPEND_TIME = { name: 'message.timestamp.type', value: 'LogAppendTime' };
const INBOUND: PartitionRef = { topic: 'inbound', partition: 0 };

describe.skipIf(brokers === null)('kafka', () => {
  let bench: KafkaBench;
  beforeAll(async () => {
    bench = await openKafkaBench(brokers ?? []);
  });
  afterEach(() => bench.closeLogs());
  afterAll(() => bench.dispose());
  const nameOf = ({ topic }: PartitionRef): string => `${bench.prefix}.${topic}`;

  describe('false acks', () => {
    const kafkajsProducer = async () => {
      const producer = bench.kafka.producer({
        idempotent: true,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: Partitioners.DefaultPartitioner,
      });
      await producer.connect();
      return producer;
    };

    it('[KAFKA-FALSE-ACK] the producer of kafkajs acknowledges a record that is nowhere in the log, after a request that failed in part', async () => {
      const log = await bench.open();
      const from = await endOf(log, EVENTS);
      const producer = await kafkajsProducer();
      const topic = nameOf(EVENTS);
      const large = Buffer.alloc(9 * 1024 * 1024);
      await expect(
        producer.sendBatch({
          topicMessages: [
            {
              topic,
              messages: [
                { partition: 0, value: 'A' },
                { partition: 1, value: large },
              ],
            },
          ],
        }),
      ).rejects.toThrow();
      const [acked] = await producer.send({ topic, messages: [{ partition: 0, value: 'B' }] });
      await producer.disconnect();
      // A was reported as failed and is there; B was acknowledged at its offset and is not.
      expect(Number(acked?.baseOffset)).toBe(from);
      expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['A']);
    });

    it('[KAFKA-FALSE-ACK] a producer of this driver that is used again after a lost answer falls into the same', async () => {
      const log = await bench.open();
      const from = await endOf(log, EVENTS);
      const options = { brokers: bench.brokers, clientId: 'test', clock: systemClock };
      const map = createClusterMap(options);
      let fault: ProduceFault | null = 'unknown-stored';
      const { lane, destroy } = makeProducer({
        clock: systemClock,
        map,
        open: (address) => openConnection(options, address),
        readTimestamp: () => Promise.resolve(0),
        fault: () => fault,
        throttledMs: () => 0,
      });
      const untilMs = systemClock.monoMs() + 10_000;
      await expect(lane.produce(nameOf(EVENTS), 0, [textRecord('A')], untilMs)).rejects.toMatchObject({
        code: 'APPEND_UNKNOWN',
      });
      fault = null;
      const stored = await lane.produce(nameOf(EVENTS), 0, [textRecord('B')], untilMs);
      expect(stored.baseOffset).toBe(from);
      expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['A']);
      destroy();
      map.close();
    });

    it('[KAFKA-FALSE-ACK] after an append that did not succeed the log takes another producer, and every ack is true', async () => {
      const log = await bench.open();
      const from = await endOf(log, EVENTS);
      bench.controls(log).inject('unknown-stored');
      await expect(log.append(EVENTS, [textRecord('A')])).rejects.toMatchObject({ code: 'APPEND_UNKNOWN' });
      bench.controls(log).inject(null);
      const { offsets } = await log.append(EVENTS, [textRecord('B')]);
      expect(offsets).toEqual([from + 1]);
      expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['A', 'B']);
    });

    it('[KAFKA-FALSE-ACK] an append that the broker finds too large is refused, alone, and what comes next is acknowledged where it is', async () => {
      const small = await openKafkaBench(bench.brokers);
      const log = await small.open();
      // Below what the log knows since it was opened.
      await small.set('events', { 'max.message.bytes': '2000' });
      const from = await endOf(log, EVENTS);
      const outcomes = await Promise.allSettled([
        log.append(EVENTS, [textRecord('before')]),
        log.append(EVENTS, [textRecord('x'.repeat(5000))]),
        log.append(OTHER, [textRecord('other')]),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(outcomes[1]).toMatchObject({ reason: { code: 'APPEND_REFUSED', details: { reason: 'too-large' } } });
      const { offsets } = await log.append(EVENTS, [textRecord('after')]);
      const read = await readAll(log, EVENTS, from);
      expect(read.map(textOf)).toEqual(['before', 'after']);
      expect(read.map(({ offset }) => offset).at(-1)).toBe(offsets[0]);
      await small.dispose();
    });
  });

  it('[KAFKA-RETRY] an append whose answer was lost with its connection is tried again as the same batch: stored once, acknowledged where and when it was', async () => {
    const log = await bench.open();
    const from = await endOf(log, EVENTS);
    const options = { brokers: bench.brokers, clientId: 'test', clock: systemClock };
    const map = createClusterMap(options);
    let lost = 0;
    const { lane, destroy } = makeProducer({
      clock: systemClock,
      map,
      open(address) {
        const connection = openConnection(options, address);
        return {
          ...connection,
          async call(call, timeoutMs) {
            const answer = await connection.call(call, timeoutMs);
            if (call.apiName !== 'Produce' || ++lost > 2) return answer;
            throw new KafkaFailure('connection', 'cut', { wasSent: true });
          },
        };
      },
      readTimestamp: async (_topic, _partition, offset) => (await log.read(EVENTS, offset)).records[0]!.timestampMs,
      fault: () => null,
      throttledMs: () => 0,
    });
    const untilMs = systemClock.monoMs() + 20_000;
    for (const [index, text] of ['A', 'B'].entries()) {
      const stored = await lane.produce(nameOf(EVENTS), 0, [textRecord(text)], untilMs);
      const [record] = (await log.read(EVENTS, from + index)).records;
      expect(stored).toEqual({ baseOffset: from + index, timestampMs: record?.timestampMs });
    }
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['A', 'B']);
    destroy();
    map.close();
  });

  it('[KAFKA-SPLIT] appends that wait together go in batches below the limit of the topic, in order', async () => {
    const small = await openKafkaBench(bench.brokers, { maxMessageBytes: 20_000 });
    const log = await small.open();
    const from = await endOf(log, EVENTS);
    const values = Array.from({ length: 60 }, (_, index) => `${index} ${'x'.repeat(900)}`);
    const acks = await Promise.all(values.map((value) => log.append(EVENTS, [textRecord(value)])));
    const read = await readAll(log, EVENTS, from);
    expect(read.map(textOf)).toEqual(values);
    expect(read.map(({ offset }) => offset)).toEqual(acks.flatMap(({ offsets }) => offsets));
    // The largest append is one batch; one byte more cannot be all or none.
    const most = log.description.maxRecordBytes;
    await log.append(EVENTS, [{ key: null, value: new Uint8Array(most), headers: [] }]);
    const half = { key: null, value: new Uint8Array(Math.ceil(most / 2) + 3000), headers: [] };
    await expect(log.append(EVENTS, [half, half])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'too-large' },
    });
    await small.dispose();
  });

  it('[KAFKA-STALL] a partition that does not answer delays no other, and its appends end by their deadline', async () => {
    const log = await bench.open({ appendTimeoutMs: 2000 });
    const from = await endOf(log, EVENTS);
    bench.controls(log).inject('unanswered', EVENTS);
    const startedMs = systemClock.monoMs();
    const stuck = Promise.allSettled(['a', 'b', 'c'].map((text) => log.append(EVENTS, [textRecord(text)])));
    for (let index = 0; index < 20; index++) {
      await log.append(OTHER, [textRecord(String(index))]);
      await log.append(INBOUND, [textRecord(String(index))]);
    }
    expect(systemClock.monoMs() - startedMs).toBeLessThan(1900);
    const [first, ...others] = await stuck;
    expect(first).toMatchObject({ reason: { code: 'APPEND_UNKNOWN' } });
    // Those behind it were never sent.
    for (const outcome of others) expect(outcome).toMatchObject({ reason: { code: 'APPEND_REFUSED' } });
    expect(systemClock.monoMs() - startedMs).toBeLessThan(6000);
    bench.controls(log).inject(null);
    await log.append(EVENTS, [textRecord('after')]);
    expect((await readAll(log, EVENTS, from)).map(textOf)).toEqual(['after']);
  });

  it('[KAFKA-QUEUE] appends beyond the bound of waiting bytes are refused, and the others are stored', async () => {
    const log = await bench.open({ maxQueuedBytes: 10_000 });
    const from = await endOf(log, EVENTS);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, index) => log.append(EVENTS, [textRecord(`${index} ${'x'.repeat(1000)}`)])),
    );
    const stored = outcomes.filter(({ status }) => status === 'fulfilled').length;
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThan(10);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'APPEND_REFUSED' });
    expect(await readAll(log, EVENTS, from)).toHaveLength(stored);
    await log.append(EVENTS, [textRecord('room again')]);
  });

  describe('positions', () => {
    it('[KAFKA-RANGE] out of range is told with both ends, above as below, and nothing moves the reader', async () => {
      const log = await bench.open();
      const ref: PartitionRef = { topic: 'events', partition: 2 };
      const { offsets } = await log.append(
        ref,
        ['a', 'b', 'c'].map((text) => textRecord(text)),
      );
      await bench.evict(ref, offsets[1]!);
      const bounds = { start: offsets[1]!, end: offsets[2]! + 1 };
      for (const position of [offsets[0]!, bounds.end + 1, bounds.end + 5000, Number.MAX_SAFE_INTEGER - 1])
        for (const waitMs of [0, 1000])
          await expect(log.read(ref, position, { waitMs })).rejects.toMatchObject({
            code: 'OFFSET_OUT_OF_RANGE',
            details: bounds,
          });
      expect((await log.read(ref, bounds.end)).records).toEqual([]);
    });

    it('[KAFKA-RANGE] records deleted below a live cursor are no matter to it; deleted above it, it is told', async () => {
      const log = await bench.open();
      const ref: PartitionRef = { topic: 'events', partition: 3 };
      const { offsets } = await log.append(
        ref,
        ['a', 'b', 'c', 'd'].map((text) => textRecord(text)),
      );
      const waiting = log.read(ref, offsets[3]! + 1, { waitMs: 20_000 });
      await bench.evict(ref, offsets[2]!);
      await log.append(ref, [textRecord('e')]);
      expect((await waiting).records.map(textOf)).toEqual(['e']);
      expect((await waiting).bounds.start).toBe(offsets[2]);
      await bench.evict(ref, offsets[3]! + 2);
      await expect(log.read(ref, offsets[3]!, { waitMs: 5000 })).rejects.toMatchObject({
        code: 'OFFSET_OUT_OF_RANGE',
        details: { start: offsets[3]! + 2, end: offsets[3]! + 2 },
      });
    });

    it('[KAFKA-TXN] transaction markers are passed over and records of any transaction count from the moment they are in the log', async () => {
      const log = await bench.open();
      const from = await endOf(log, EVENTS);
      const producer = bench.kafka.producer({
        transactionalId: `${bench.prefix}-tx`,
        idempotent: true,
        maxInFlightRequests: 1,
        createPartitioner: Partitioners.DefaultPartitioner,
      });
      await producer.connect();
      for (const [value, ends] of [
        ['committed', true],
        ['aborted', false],
      ] as const) {
        const transaction = await producer.transaction();
        await transaction.send({ topic: nameOf(EVENTS), messages: [{ partition: 0, key: 'k', value }] });
        const open = await log.read(EVENTS, from, { waitMs: 5000 });
        expect(open.records.map(textOf)).toContain('committed');
        await (ends ? transaction.commit() : transaction.abort());
      }
      await producer.disconnect();
      // The coordinator answers before its marker is in the log.
      await eventually(systemClock, 'both markers', async () => (await log.bounds(EVENTS)).end === from + 4);
      const { offsets } = await log.append(EVENTS, [textRecord('after')]);
      // Two records, two markers.
      expect(offsets[0]).toBe(from + 4);
      const read = await readAll(log, EVENTS, from);
      expect(read.map((record) => [record.offset - from, textOf(record)])).toEqual([
        [0, 'committed'],
        [2, 'aborted'],
        [4, 'after'],
      ]);
      // A marker alone is no news for one who waits, and its place is passed.
      const marker = await log.read(EVENTS, from + 3, { waitMs: 5000 });
      expect(marker.records.map(textOf)).toEqual(['after']);
    });

    it('[KAFKA-HOLES] a reader passes what compaction removed, wherever it begins, and reaches the end', async () => {
      const log = await bench.open();
      const meta: PartitionRef = { topic: 'meta', partition: 0 };
      const from = await endOf(log, meta);
      for (let round = 0; round < 6; round++)
        await log.append(meta, [textRecord(`a${round}`, 'a'), textRecord(`b${round}`, 'b')]);
      await bench.compact('meta');
      const { end } = await log.bounds(meta);
      for (let position = from; position <= end; position++) {
        const read = await readAll(log, meta, position, 1);
        const kept = read.filter(({ value }) => value !== null).map((record) => [record.offset - from, textOf(record)]);
        expect(kept).toEqual(
          [
            [10, 'a5'],
            [11, 'b5'],
          ].filter(([offset]) => from + (offset as number) >= position),
        );
      }
    });

    it('[KAFKA-CODEC] batches that other producers compress with gzip are read as they are', async () => {
      const log = await bench.open();
      await bench.set('events', { 'compression.type': 'producer' });
      const from = await endOf(log, EVENTS);
      const producer = bench.kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
      await producer.connect();
      const messages = Array.from({ length: 5 }, (_, index) => ({
        partition: 0,
        key: `key ${index}`,
        value: `value ${index} ${'z'.repeat(500)}`,
        headers: { h: `header ${index}` },
      }));
      await producer.send({ topic: nameOf(EVENTS), compression: CompressionTypes.GZIP, messages });
      await producer.disconnect();
      await bench.set('events', { 'compression.type': 'uncompressed' });
      const read = await readAll(log, EVENTS, from + 2, 100);
      expect(read.map(textOf)).toEqual(messages.slice(2).map(({ value }) => value));
      expect(
        read.map(({ headers }) => headers.map(([name, value]) => `${name}: ${String(Buffer.from(value))}`)),
      ).toEqual(messages.slice(2).map(({ headers }) => [`h: ${headers.h}`]));
    });
  });

  describe('topics', () => {
    it('[KAFKA-RECREATED] a re-created topic answers an old position with other records and no error: only what stands above the log can tell', async () => {
      const own = await openKafkaBench(bench.brokers);
      const log = await own.open({ readTimeoutMs: 1000, appendTimeoutMs: 2000 });
      const name = `${own.prefix}.events`;
      await log.append(
        EVENTS,
        Array.from({ length: 60 }, (_, index) => textRecord(`old ${index}`)),
      );
      expect((await log.read(EVENTS, 50)).records.map(textOf)[0]).toBe('old 50');
      const waiting = log.read(EVENTS, 60, { waitMs: 30_000 }).then(
        () => 'a batch',
        (error: unknown) => (error as { code: string }).code,
      );
      await own.admin.deleteTopics({ topics: [name] });
      expect(await waiting).toBe('LOG_UNAVAILABLE');
      await expect(log.append(EVENTS, [textRecord('lost')])).rejects.toThrow();
      // The broker creates topics when a client lets it; a deleted one must not come back with other settings.
      expect(await own.admin.listTopics()).not.toContain(name);
      await own.admin.createTopics({
        topics: [
          {
            topic: name,
            numPartitions: 4,
            configEntries: [LOG_APPEND_TIME],
          },
        ],
        waitForLeaders: true,
      });
      await eventually(systemClock, 'the new topic is there', () =>
        log.append(EVENTS, [textRecord('new 0')]).then(
          () => true,
          () => false,
        ),
      );
      await expect(log.read(EVENTS, 50)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
      for (let index = 0; index < 60; index++) await log.append(EVENTS, [textRecord('new')]);
      expect((await log.read(EVENTS, 50)).records.map(textOf)[0]).toBe('new');
      await own.dispose();
    });

    it('[KAFKA-ANEW] that a topic was made anew, and has grown past a reader who did not look meanwhile, shows by its reads after the next look', async () => {
      const own = await openKafkaBench(bench.brokers);
      const [log, other] = [await own.open(), await own.open()];
      await log.append(EVENTS, [textRecord('old 0'), textRecord('old 1')]);
      const seenAt = async (position: number): Promise<number | undefined> =>
        (await log.read(EVENTS, position)).madeAnew;
      await log.describe();
      await log.describe();
      expect(await seenAt(1)).toBe(0);
      const name = `${own.prefix}.events`;
      await own.admin.deleteTopics({ topics: [name] });
      const topic = { topic: name, numPartitions: 4, configEntries: [LOG_APPEND_TIME] };
      await own.admin.createTopics({ topics: [topic], waitForLeaders: true });
      await eventually(systemClock, 'the new topic has grown past the reader', async () => {
        await other.append(EVENTS, [textRecord('new'), textRecord('new'), textRecord('new')]).catch(() => undefined);
        return await other.bounds(EVENTS).then(
          ({ end }) => end >= 3,
          () => false,
        );
      });
      await log.describe();
      expect(await seenAt(1)).toBe(1);
      await own.dispose();
    });

    it('[KAFKA-OPEN] a log whose topics are missing or set so that records get lost is not opened, and the error names the cure', async () => {
      const own = await openKafkaBench(bench.brokers);
      const opening = (): Promise<unknown> => own.open();
      await own.set('events', { 'cleanup.policy': 'compact' });
      await expect(opening()).rejects.toMatchObject({
        code: 'LOG_INCOMPATIBLE',
        message: expect.stringContaining('cleanup.policy=compact') as string,
      });
      await own.set('events', { 'cleanup.policy': 'delete', 'message.timestamp.type': 'CreateTime' });
      await expect(opening()).rejects.toMatchObject({ code: 'LOG_INCOMPATIBLE' });
      await own.set('events', { 'message.timestamp.type': 'LogAppendTime' });
      await (await own.open()).close();
      await own.admin.deleteTopics({ topics: [`${own.prefix}.meta`] });
      await eventually(systemClock, 'the topic is gone', async () =>
        own.open().then(
          () => false,
          (error: unknown) => hasLogCode(error, 'LOG_INCOMPATIBLE'),
        ),
      );
      await expect(opening()).rejects.toMatchObject({
        message: expect.stringContaining(`no topic ${own.prefix}.meta`) as string,
        details: { cure: 'apply-topics' },
      });
      expect(await own.admin.listTopics()).not.toContain(`${own.prefix}.meta`);
      await own.dispose();
    });

    it('[KAFKA-OPEN] without a broker the log is unavailable, in bounded time', async () => {
      const startedMs = systemClock.monoMs();
      await expect(
        openKafkaLog({ brokers: ['127.0.0.1:1'], clientId: 'test', clock: systemClock }),
      ).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
      expect(systemClock.monoMs() - startedMs).toBeLessThan(10_000);
      await expect(openKafkaLog({ brokers: ['no port'], clientId: 'test', clock: systemClock })).rejects.toThrow(
        TypeError,
      );
    });

    it('[KAFKA-DESCRIBE] the description is that of the topics: smallest partition count, limit of a record, retention', async () => {
      const own = await openKafkaBench(bench.brokers, { retentionMs: 3_600_000, maxMessageBytes: 100_000 });
      const { description } = await own.open();
      expect(description).toMatchObject({ driver: 'kafka', partitions: 4, retentionMs: 3_600_000 });
      expect(description.maxRecordBytes).toBeGreaterThan(90_000);
      expect(description.maxRecordBytes).toBeLessThan(100_000);
      expect(description.clusterId).toMatch(new RegExp(`^.+/${own.prefix}$`));
      await own.admin.createPartitions({ topicPartitions: [{ topic: `${own.prefix}.inbound`, count: 6 }] });
      expect((await own.open()).description.partitions).toBe(4);
      await own.dispose();
    });
  });

  describe('groups', () => {
    it('[KAFKA-COMMIT] a commit shows in the group <prefix>.<group> under the partition, and is refused for one that is not assigned', async () => {
      const log = await bench.open({ sessionTimeoutMs: 2000 });
      const group = 'commit';
      const other = await bench.open({ sessionTimeoutMs: 2000 });
      const [a, b] = [
        await log.join({ group, member: 'a', onChange: () => undefined }),
        await other.join({ group, member: 'b', onChange: () => undefined }),
      ];
      await eventually(systemClock, 'both have two', () => a.assigned().length === 2 && b.assigned().length === 2);
      await a.commit(a.assigned()[0]!, 17);
      await expect(a.commit(b.assigned()[0]!, 3)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
      const [offsets] = await bench.admin.fetchOffsets({
        groupId: `${bench.prefix}.commit`,
        topics: [`${bench.prefix}.inbound`],
      });
      const committed = offsets?.partitions.filter(({ offset }) => offset !== '-1');
      expect(committed).toEqual([expect.objectContaining({ partition: a.assigned()[0], offset: '17' })]);
      const { groups } = await bench.admin.describeGroups([`${bench.prefix}.commit`]);
      expect(groups[0]).toMatchObject({ state: 'Stable', protocol: 'throughline-sticky', protocolType: 'consumer' });
      expect(groups[0]?.members).toHaveLength(2);
    });
  });

  it('[KAFKA-GROUP] a session timeout that the brokers do not take is told at once, with what they take', async () => {
    const log = await bench.open({ sessionTimeoutMs: 400 });
    const startedMs = systemClock.monoMs();
    await expect(log.join({ group: 'hasty', member: 'a', onChange: () => undefined })).rejects.toMatchObject({
      code: 'LOG_INCOMPATIBLE',
      message: expect.stringMatching(/400 ms \(--lease\).*group\.min\.session\.timeout\.ms/) as string,
    });
    expect(systemClock.monoMs() - startedMs).toBeLessThan(20_000);
  });

  it('[KAFKA-LANES] a connection serves one purpose: waiting readers hold up neither appends nor other reads', async () => {
    const log = await bench.open();
    const ends = await Promise.all([0, 1, 2, 3].map((partition) => endOf(log, { topic: 'inbound', partition })));
    const abort = new AbortController();
    const waiting = ends.map((end, partition) =>
      log.read({ topic: 'inbound', partition }, end, { waitMs: 30_000, signal: abort.signal }).catch(() => undefined),
    );
    await sleep(systemClock, 100);
    const took: number[] = [];
    for (let index = 0; index < 20; index++) {
      const startedMs = systemClock.monoMs();
      const { offsets } = await log.append(EVENTS, [textRecord('x')]);
      await log.read(EVENTS, offsets[0]!);
      took.push(systemClock.monoMs() - startedMs);
    }
    // A long poll lasts 500 ms: behind one, most would take that long.
    took.sort((a, b) => a - b);
    expect(took[10]).toBeLessThan(250);
    expect(bench.controls(log).connections()).toEqual({
      tails: 4,
      lookups: expect.any(Number) as number,
      producers: 1,
    });
    const abortedMs = systemClock.monoMs();
    abort.abort();
    await Promise.all(waiting);
    expect(systemClock.monoMs() - abortedMs).toBeLessThan(250);
  });
});
