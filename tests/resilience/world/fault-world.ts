/** What faults happen to: three brokers, two gateways behind a balancer, two workers, each behind ways of its own that can be cut. */
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { createSeededRandom, startFaultLink } from '@throughline/testkit';
import type { SeededRandom, FaultLink } from '@throughline/testkit';
import { startCluster as startKafkaCluster } from '@throughline/testkit/kafka';
import type { KafkaCluster, PartyLinks } from '@throughline/testkit/kafka';
import { makeKafkaPlace, startBalancer, startCluster } from '@throughline/testkit/processes';
import type { Balancer, Cluster } from '@throughline/testkit/processes';
import { openTopicTools } from './topic-tools.ts';
import type { TopicTools } from './topic-tools.ts';

export type Role = 'gateway' | 'worker';

export interface FaultWorld {
  readonly kafka: KafkaCluster;
  readonly product: Cluster;
  readonly topics: TopicTools;
  /** For clients: the balancer. */
  readonly url: string;
  /** Where the server leaves a line a run. */
  readonly runsFile: string;
  /** What faults choose by. */
  readonly random: SeededRandom;
  readonly places: readonly number[];
  /** The ways of one process to the brokers. */
  links(role: Role, place: number): PartyLinks;
  /** The way of clients, and of the balancer, to the gateway in this place. */
  front(place: number): FaultLink;
  /** Creates the topics that are missing; more partitions are added. */
  applyTopics(partitions?: number): Promise<void>;
  /** Resolves when whatever faults stopped, cut or paused runs again. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

export interface FaultWorldOptions {
  readonly seed: number;
  /** Default: the product's own. */
  readonly gatewayArgs?: readonly string[];
  readonly workerArgs?: readonly string[];
  /** For Node, in every process of the product. */
  readonly nodeOptions?: string;
}

export const PARTITIONS = 6;
const PLACES = [0, 1];
const SERVER = fileURLToPath(new URL('../fixtures/recording-server.ts', import.meta.url));
/** Of the group; the product's default. */
export const LEASE_MS = 8000;
const SMALL_DISK_MB = 256;

export async function startFaultWorld({
  seed,
  gatewayArgs = [],
  workerArgs = [],
  nodeOptions,
}: FaultWorldOptions): Promise<FaultWorld> {
  const prefix = `faults-${process.pid}-${Date.now().toString(36)}`;
  const parts: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) await part();
  };
  try {
    const kafka = await startKafkaCluster({
      overrides: {
        // The default leaves no heap for anything else.
        'log.cleaner.dedupe.buffer.size': '16777216',
        // A small disk holds three brokers' internal topics and ours.
        'log.segment.bytes': '16777216',
        'log.index.size.max.bytes': '262144',
      },
      parties: PLACES.flatMap((place) => [`gateway${place}`, `worker${place}`]),
      smallDiskMb: SMALL_DISK_MB,
    });
    parts.push(() => kafka.stop());
    const links = (role: string, place: number): PartyLinks => kafka.party(`${role}${place}`);
    let runsFile = '';
    const product: Cluster = await startCluster({
      log: makeKafkaPlace({
        ...{ brokers: kafka.brokers, replication: 3, partitions: PARTITIONS, leaseMs: LEASE_MS, prefix },
        brokersOf: (role, place) => links(role, place).addresses,
      }),
      prepare(folder) {
        runsFile = path.join(folder, 'runs');
        process.env['RUNS_FILE'] = runsFile;
      },
      ...(nodeOptions === undefined ? {} : { nodeOptions }),
      gatewayArgs: ['--keep-alive', '1s', ...gatewayArgs],
      workerArgs: ['--module', SERVER, '--on-owner-loss', 'restore', '--admin', '127.0.0.1:0', ...workerArgs],
    });
    parts.push(async () => product[Symbol.asyncDispose]());
    const fronts: FaultLink[] = [];
    for (const place of PLACES) {
      const front = await startFaultLink({ target: () => addressOf(product.gateways[place]?.url) });
      fronts.push(front);
      parts.push(() => front.stop());
    }
    const front = (place: number): FaultLink => fronts[place]!;
    const balancer: Balancer = await startBalancer(() =>
      product.gateways.map(({ adminUrl }, place) => ({ url: `http://127.0.0.1:${front(place).port}/mcp`, adminUrl })),
    );
    parts.push(async () => balancer[Symbol.asyncDispose]());
    const topics = await openTopicTools(kafka, prefix);
    parts.push(() => topics.close());
    const world: FaultWorld = {
      ...{ kafka, product, topics, runsFile, links, front },
      url: balancer.url,
      random: createSeededRandom(seed),
      places: PLACES,
      async applyTopics(partitions = PARTITIONS) {
        const client = { brokers: kafka.brokers, clientId: 'throughline-test', clock: systemClock };
        await applyTopics(client, { prefix, partitions, replication: 3 });
      },
      async heal() {
        for (const place of PLACES) {
          await front(place).heal();
          for (const role of ['gateway', 'worker'])
            await Promise.all(links(role, place).all.map((link) => link.heal()));
        }
        await Promise.all(kafka.members.map((member) => member.resume()));
        await Promise.all(kafka.members.map((member) => member.start()));
        for (const place of PLACES) {
          product.gateways[place]?.resume();
          product.workers[place]?.resume();
        }
        await restartMissing(product);
      },
      stop,
    };
    return world;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts another process in each place whose process has ended. */
export async function restartMissing(product: Cluster): Promise<void> {
  await Promise.all([
    ...product.gateways.map(async (each, place) => {
      if (!each.isRunning()) await product.startGateway(place);
    }),
    ...product.workers.map(async (each, place) => {
      if (!each.isRunning()) await product.startWorker(place);
    }),
  ]);
}

function addressOf(url = 'http://127.0.0.1:1'): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
