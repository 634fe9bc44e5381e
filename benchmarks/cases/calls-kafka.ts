/** A call over gateway, Kafka and worker against two hops of stock kafkajs, in alternation on one broker. */
import { systemClock } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import { startLocalKafka } from '@throughline/testkit/kafka';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { Caller } from '../lib/caller.ts';
import { median, percentile } from '../lib/figures.ts';
import { startProduct } from '../lib/product.ts';
import { plainRow, ratioRow } from '../lib/result.ts';
import type { BenchCase } from '../lib/result.ts';
import { startPeer } from '../lib/start-peer.ts';

const ROUNDS = 12;
const CALLS = 60;
const TEXT = 'x'.repeat(200);

export const callsOnKafka: BenchCase = {
  name: 'calls on Kafka',
  async run() {
    const kafka = await startLocalKafka();
    try {
      await using product = await startProduct({
        shape: { gateways: 1, workers: 1 },
        kafka: { brokers: kafka.brokers, prefix: 'bench' },
      });
      await using stock = await openStockHops(kafka.brokers);
      await using own = await openOwnHops(kafka.brokers);
      const caller = new Caller(product.url);
      await caller.initialize();
      const samples = { look: [] as number[], act: [] as number[], stock: [] as number[], own: [] as number[] };
      const measures = {
        look: () => caller.call('look', { text: TEXT }),
        act: () => caller.call('act', { text: TEXT }),
        stock: () => stock.hop(TEXT),
        own: () => own.hop(TEXT),
      };
      for (let round = 0; round <= ROUNDS; round += 1)
        for (const name of ['stock', 'look', 'own', 'act'] as const)
          for (let call = 0; call < CALLS; call += 1) {
            const ms = await measures[name]();
            // The first round warms everything up.
            if (round > 0) samples[name].push(ms);
          }
      caller.close();
      const floor = median(samples.stock);
      return {
        name: this.name,
        setup: `one broker, replication 1, acks=all, ${ROUNDS} alternating rounds of ${CALLS} calls one after the other, text of ${TEXT.length} bytes; gateway and worker in processes of their own; floor: kafkajs producer → consumer group → producer → consumer group, over a second process`,
        rows: [
          ratioRow('call without effects, p50', median(samples.look), floor, 'ms', { most: 1.6 }),
          ratioRow('call with effects, p50', median(samples.act), floor, 'ms', { most: 2.3 }),
          plainRow('call without effects, p99', percentile(samples.look, 0.99), 'ms'),
          plainRow('call with effects, p99', percentile(samples.act, 0.99), 'ms'),
          plainRow('floor (kafkajs), p99', percentile(samples.stock, 0.99), 'ms'),
          plainRow('two hops of our own driver, p50', median(samples.own), 'ms'),
        ],
      };
    } finally {
      await kafka.stop();
    }
  },
};

interface Hops extends AsyncDisposable {
  /** Milliseconds there and back. */
  hop(text: string): Promise<number>;
}

async function openStockHops(brokers: readonly string[]): Promise<Hops> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({
    topics: ['there', 'back'].map((topic) => ({ topic, numPartitions: 1 })),
    waitForLeaders: true,
  });
  await admin.disconnect();
  const peer = await startPeer('kafka-echo', [brokers[0] ?? '', 'there', 'back']);
  const createPartitioner = Partitioners.DefaultPartitioner;
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner });
  await producer.connect();
  const consumer = kafka.consumer({ groupId: 'bench-back' });
  await consumer.connect();
  await consumer.subscribe({ topic: 'back', fromBeginning: true });
  let arrived = (): void => undefined;
  const joined = new Promise<void>((resolve) => {
    consumer.on('consumer.group_join', () => resolve());
  });
  await consumer.run({
    eachMessage: async () => {
      arrived();
    },
  });
  await joined;
  return {
    async hop(text) {
      const startedAt = performance.now();
      const back = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      await producer.send({ topic: 'there', acks: -1, messages: [{ key: 'k', value: text, partition: 0 }] });
      await back;
      return performance.now() - startedAt;
    },
    async [Symbol.asyncDispose]() {
      await consumer.disconnect();
      await producer.disconnect();
      await peer[Symbol.asyncDispose]();
    },
  };
}

async function openOwnHops(brokers: readonly string[]): Promise<Hops> {
  const client = { brokers, clientId: 'bench', clock: systemClock };
  await applyTopics(client, { prefix: 'hops', partitions: 1, replication: 1 });
  const peer = await startPeer('log-echo', [brokers[0] ?? '', 'hops']);
  const log = await openKafkaLog({ ...client, prefix: 'hops' });
  const events = { topic: 'events', partition: 0 } as const;
  let position = (await log.bounds(events)).end;
  return {
    async hop(text) {
      const startedAt = performance.now();
      const value = new TextEncoder().encode(text);
      // As a gateway does: it reads before it appends.
      const back = readNext();
      await log.append({ topic: 'inbound', partition: 0 }, [{ key: new Uint8Array([1]), value, headers: [] }]);
      await back;
      return performance.now() - startedAt;
    },
    async [Symbol.asyncDispose]() {
      await log.close();
      await peer[Symbol.asyncDispose]();
    },
  };

  async function readNext(): Promise<void> {
    for (;;) {
      const batch = await log.read(events, position, { waitMs: 500 });
      position = batch.next;
      if (batch.records.length > 0) return;
    }
  }
}
