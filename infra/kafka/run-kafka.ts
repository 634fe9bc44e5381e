/**
 * `npm run kafka`: a broker for trying things out, in the foreground, with the topics of a prefix, so that
 * `npm start -- --log kafka://127.0.0.1:9092` runs on it. Data stays in `.throughline/kafka` until it is removed.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { startLocalKafka } from '@throughline/testkit/kafka';
import { text, wholeNumber } from '../options/option.ts';
import { optionsOrExit } from '../options/read-options.ts';

const KAFKA = {
  command: 'npm run kafka',
  does: 'A broker of one process, with the topics of the prefix, until Ctrl-C.',
  options: {
    port: wholeNumber({ takes: '<port>', says: 'where it listens (default 9092)', from: 1, to: 65_535, absent: 9092 }),
    data: text('<folder>', 'keeps its data (default .throughline/kafka)', path.join('.throughline', 'kafka')),
    version: text('<version>', 'of Kafka (default: the one that the tests use)', null),
    prefix: text('<name>', 'of the topics (default throughline)', 'throughline'),
  },
};

async function isTaken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const { port, data, version, prefix } = optionsOrExit(KAFKA, process.argv.slice(2));
if (await isTaken(port)) {
  process.stderr.write(
    `Something listens on port ${port} already: a broker that runs, or name another by npm run kafka -- --port <number>\n`,
  );
  process.exit(1);
}
process.stdout.write('Starting Kafka (one broker; the first start downloads it from Maven Central) …\n');
const kafka = await startLocalKafka({
  port,
  dataDir: path.resolve(data),
  ...(version === null ? {} : { version }),
});
// One broker holds one replica. What is there already stays as it is.
await applyTopics(
  { brokers: kafka.brokers, clientId: 'throughline-operator', clock: systemClock },
  { prefix, partitions: 4, replication: 1 },
);
process.stdout.write(`Kafka is ready at ${kafka.brokers.join(',')}. Ctrl-C stops it; its data is in ${data}.\n`);
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
