/**
 * `npm run kafka`: a broker for trying things out, in the foreground, with the topics of a prefix, so that
 * `npm start -- --log kafka://127.0.0.1:9092` runs on it. Data stays in `.throughline/kafka` until it is removed.
 */
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { startLocalKafka } from '@throughline/testkit/kafka';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '9092' },
    data: { type: 'string', default: path.join('.throughline', 'kafka') },
    version: { type: 'string' },
    prefix: { type: 'string', default: 'throughline' },
  },
});

process.stdout.write('Starting Kafka (one broker; the first start downloads it from Maven Central) …\n');
const kafka = await startLocalKafka({
  port: Number(values.port),
  dataDir: path.resolve(values.data),
  ...(values.version === undefined ? {} : { version: values.version }),
});
// One broker holds one replica. What is there already stays as it is.
await applyTopics(
  { brokers: kafka.brokers, clientId: 'throughline-operator', clock: systemClock },
  { prefix: values.prefix, partitions: 4, replication: 1 },
);
process.stdout.write(`Kafka is ready at ${kafka.brokers.join(',')}. Ctrl-C stops it; its data is in ${values.data}.\n`);
process.stdout.write(`In another terminal: npm start -- --log kafka://${kafka.brokers.join(',')}\n`);

let isStopping = false;
const stop = (signal: NodeJS.Signals): void => {
  if (isStopping) return;
  isStopping = true;
  process.stdout.write(`\n${signal}: stopping Kafka …\n`);
  void kafka.stop().then(() => {
    process.stdout.write('Kafka has stopped.\n');
    process.exit(0);
  });
};
process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', stop);
