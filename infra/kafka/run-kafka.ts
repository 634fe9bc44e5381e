/**
 * `npm run kafka`: a broker for trying things out, in the foreground, with the topics of a prefix, so that
 * `npm start -- --log kafka://127.0.0.1:9092` runs on it. Data stays in `.throughline/kafka` until it is removed.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { errorText, systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { startLocalKafka } from '@throughline/testkit/kafka';

const USAGE = `npm run kafka [-- --port 9092] [--data .throughline/kafka] [--version 4.4.0] [--prefix throughline]
A broker of one process, with the topics of the prefix, until Ctrl-C.
`;

interface Wishes {
  readonly port: string;
  readonly data: string;
  readonly version?: string | undefined;
  readonly prefix: string;
  readonly help: boolean;
}

function readWishes(): Wishes {
  try {
    return parseArgs({
      options: {
        port: { type: 'string', default: '9092' },
        data: { type: 'string', default: path.join('.throughline', 'kafka') },
        version: { type: 'string' },
        prefix: { type: 'string', default: 'throughline' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n${USAGE}`);
    process.exit(2);
  }
}

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

const wishes = readWishes();
if (wishes.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const port = Number(wishes.port);
if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  process.stderr.write(`--port ${wishes.port} is no port\n${USAGE}`);
  process.exit(2);
}
if (await isTaken(port)) {
  process.stderr.write(
    `Something listens on port ${port} already: a broker that runs, or name another by npm run kafka -- --port <number>\n`,
  );
  process.exit(1);
}
process.stdout.write('Starting Kafka (one broker; the first start downloads it from Maven Central) …\n');
const kafka = await startLocalKafka({
  port,
  dataDir: path.resolve(wishes.data),
  ...(wishes.version === undefined ? {} : { version: wishes.version }),
});
// One broker holds one replica. What is there already stays as it is.
await applyTopics(
  { brokers: kafka.brokers, clientId: 'throughline-operator', clock: systemClock },
  { prefix: wishes.prefix, partitions: 4, replication: 1 },
);
process.stdout.write(`Kafka is ready at ${kafka.brokers.join(',')}. Ctrl-C stops it; its data is in ${wishes.data}.\n`);
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
