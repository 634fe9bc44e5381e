/** The other end of two hops by stock kafkajs: what comes on one topic goes to another. Arguments: broker, from, to. */
import { Kafka, logLevel, Partitioners } from 'kafkajs';

const [broker = '', from = '', to = ''] = process.argv.slice(2);
const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.ERROR });
const producer = kafka.producer({
  idempotent: true,
  maxInFlightRequests: 1,
  createPartitioner: Partitioners.DefaultPartitioner,
});
await producer.connect();
const consumer = kafka.consumer({ groupId: `echo-${from}` });
await consumer.connect();
await consumer.subscribe({ topic: from, fromBeginning: true });
consumer.on('consumer.group_join', () => {
  process.stdout.write('ready\n');
});
await consumer.run({
  eachMessage: async ({ message }) => {
    await producer.send({ topic: to, acks: -1, messages: [{ key: message.key, value: message.value, partition: 0 }] });
  },
});
