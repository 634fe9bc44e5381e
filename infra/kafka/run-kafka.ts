/** `npm run kafka`: a broker for trying things out, in the foreground. Data stays in `.throughline/kafka` until it is removed. */
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { startLocalKafka } from '@throughline/testkit/kafka';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '9092' },
    data: { type: 'string', default: path.join('.throughline', 'kafka') },
    version: { type: 'string' },
  },
});

process.stdout.write('Starting Kafka (one broker; the first start downloads it from Maven Central) …\n');
const kafka = await startLocalKafka({
  port: Number(values.port),
  dataDir: path.resolve(values.data),
  ...(values.version === undefined ? {} : { version: values.version }),
});
process.stdout.write(`Kafka is ready at ${kafka.brokers.join(',')}. Ctrl-C stops it; its data is in ${values.data}.\n`);

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
