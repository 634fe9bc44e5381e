/** Gateways and a worker as processes on a broker, in topics of their own, with the means to break the history under them. */
import { openSync, closeSync, ftruncateSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { systemClock } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import type { EpochRecord } from '@throughline/protocol';
import { Meta } from '@throughline/tail';
import type { LocalKafka } from '@throughline/testkit/kafka';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { HttpAnswer, ThroughlineProcess } from '@throughline/testkit/processes';

export type Broken = 'inbound' | 'events';

export interface BrokenWorld extends AsyncDisposable {
  readonly prefix: string;
  /** Endpoints of the gateways. */
  urls(): readonly string[];
  processes(): readonly ThroughlineProcess[];
  /** All processes, by SIGKILL. */
  killAll(): Promise<void>;
  startAll(): Promise<void>;
  epochs(): Promise<readonly EpochRecord[]>;
  /** Resolves when the marks tell of everything that lies in both topics now. */
  marked(): Promise<void>;
  ends(topic: Broken): Promise<readonly number[]>;
  /** As Kafka's own tools show it: ends of inbound less what the group of the workers committed. */
  lag(): Promise<number>;
  recreate(topics: readonly Broken[]): Promise<void>;
  logs(): string;
}

const PARTITIONS = 2;
const SECRET = 'a-secret-for-tests-that-is-long-enough-0123456789';
let worlds = 0;

export async function openBrokenWorld(kafka: LocalKafka): Promise<BrokenWorld> {
  const prefix = `epoch-${process.pid}-${++worlds}`;
  const { brokers } = kafka;
  const client = { brokers, clientId: 'throughline-test', clock: systemClock };
  const plan = { prefix, partitions: PARTITIONS, replication: 1 };
  await applyTopics(client, plan);
  const admin = new Kafka({ clientId: 'throughline-test', brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  const folder = makeScratchFolder();
  const all: ThroughlineProcess[] = [];
  let running: readonly ThroughlineProcess[] = [];
  const start = async (role: 'gateway' | 'worker'): Promise<ThroughlineProcess> => {
    const args = ['--log', `kafka://${brokers.join(',')}`, '--prefix', prefix];
    const own = role === 'worker' ? ['--on-owner-loss', 'restore'] : ['--retry', '50ms'];
    const started = await startThroughline(role, {
      args: [...args, ...own],
      folder: folder.path,
      env: { THROUGHLINE_SECRETS: SECRET },
    });
    all.push(started);
    return started;
  };
  const withLog = async <T>(
    use: (log: Awaited<ReturnType<typeof openKafkaLog>>, meta: Meta) => Promise<T>,
  ): Promise<T> => {
    const log = await openKafkaLog({ ...client, prefix });
    const meta = new Meta({ log, clock: systemClock });
    try {
      await meta.sync(AbortSignal.timeout(20_000));
      return await use(log, meta);
    } finally {
      await meta.close();
      await log.close();
    }
  };
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition);
  const world: BrokenWorld = {
    prefix,
    urls: () => running.filter(({ role }) => role === 'gateway').map(({ url }) => url),
    processes: () => running,
    async killAll() {
      await Promise.all(running.map((each) => each.kill()));
      running = [];
    },
    async startAll() {
      running = await Promise.all([start('gateway'), start('gateway'), start('worker')]);
    },
    epochs: () => withLog((_log, meta) => Promise.resolve(meta.epochs())),
    marked: () =>
      withLog(async (log, meta) => {
        const epoch = meta.epoch() ?? '';
        for (const topic of ['inbound', 'events'] as const)
          for (const partition of partitions) {
            const { end } = await log.bounds({ topic, partition });
            await waitUntil(
              `a mark of ${topic}/${partition} at ${end}`,
              () => end === 0 || (meta.mark(epoch, { topic, partition })?.end ?? 0) >= end,
              20_000,
            );
          }
      }),
    ends: (topic) =>
      withLog((log) => Promise.all(partitions.map(async (partition) => (await log.bounds({ topic, partition })).end))),
    async lag() {
      await admin.connect();
      const topic = `${prefix}.inbound`;
      const [offsets] = await admin.fetchOffsets({ groupId: `${prefix}.workers`, topics: [topic] });
      const ends = await admin.fetchTopicOffsets(topic);
      return ends.reduce((sum, { partition, high }) => {
        const committed = offsets?.partitions.find((each) => each.partition === partition)?.offset ?? '0';
        return sum + Number(high) - Math.max(0, Number(committed));
      }, 0);
    },
    async recreate(topics) {
      await admin.connect();
      await admin.deleteTopics({ topics: topics.map((topic) => `${prefix}.${topic}`) });
      await waitUntil('the topics to be there again', async () => {
        try {
          await applyTopics(client, plan);
          return true;
        } catch {
          return false;
        }
      });
    },
    logs: () => all.map(({ role, pid, logs }) => `— ${role} ${pid}\n${logs()}`).join('\n'),
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((part) => part[Symbol.asyncDispose]()));
      await admin.disconnect();
      folder[Symbol.dispose]();
    },
  };
  try {
    await world.startAll();
  } catch (error) {
    await world[Symbol.asyncDispose]();
    throw error;
  }
  return world;
}

/** Cuts the log of a partition of a broker that does not run: keeps whole batches that begin below `end`. */
export function cutPartition(dataDir: string, name: string, end: number): void {
  const folder = path.join(dataDir, 'data', name);
  for (const file of readdirSync(folder)) {
    if (/\.(index|timeindex|snapshot|txnindex)$/.test(file)) rmSync(path.join(folder, file));
    if (!file.endsWith('.log')) continue;
    const bytes = readFileSync(path.join(folder, file));
    let at = 0;
    while (at + 12 <= bytes.length && Number(bytes.readBigInt64BE(at)) < end) at += 12 + bytes.readInt32BE(at + 8);
    const descriptor = openSync(path.join(folder, file), 'r+');
    ftruncateSync(descriptor, Math.min(at, bytes.length));
    closeSync(descriptor);
  }
}

/** A session that works, however long the processes need. */
export async function connectSoon(url: string): Promise<RawClient> {
  return await waitUntil(
    `a session on ${url}`,
    async () => {
      try {
        return await RawClient.connect(url);
      } catch {
        return null;
      }
    },
    60_000,
  );
}

/** The answer to a resume, as soon as it is no 503. */
export async function resumeSoon(client: RawClient, url: string, id: string): Promise<HttpAnswer> {
  return await waitUntil(
    `an answer to ${id}`,
    async () => {
      const answer = await client.resume(url, id);
      if (answer.status !== 503) return answer;
      if (answer.headers['retry-after'] === undefined) throw new Error('a 503 without Retry-After');
      answer.cut();
      return null;
    },
    60_000,
  );
}
