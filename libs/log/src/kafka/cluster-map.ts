/** Who leads which partition, as the cluster last said it; asked again when a request shows that it has changed. */
import { sleep } from '../clock.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { openConnection } from './connection.ts';
import type { Courtesy } from './courtesy.ts';
import { brokerFailure, isDenial, isPassing, KafkaFailure } from './kafka-failure.ts';
import type { KafkaClientOptions } from './options.ts';
import { parseBrokers } from './options.ts';
import type { WireCall } from './wire/call.ts';
import { metadataCall } from './wire/cluster.ts';
import type { ClusterMetadata } from './wire/cluster.ts';

export interface ClusterMap {
  /** Where the leader of a partition is. Rejects with `KafkaFailure` (`no-leader`, `connection` …). */
  leaderOf(topic: string, partition: number): Promise<Address>;
  /** Says that a leader is not where it was. */
  forget(topic: string): void;
  /** Fresh metadata of topics; with what this process may do with them, if that is asked for. */
  metadata(topics: readonly string[], asksRights?: boolean): Promise<ClusterMetadata>;
  /** Any request that every broker answers, or that is forwarded to the controller. */
  callAny<T>(call: WireCall<T>, timeoutMs: number): Promise<T>;
  callController<T>(call: WireCall<T>, timeoutMs: number): Promise<T>;
  close(): void;
}

const METADATA_TIMEOUT_MS = 5000;
/** A topic is not asked for more often, however many readers miss its leader. */
const LEAST_AGE_MS = 100;
/** A leader that is cut off from the cluster, but not from us, answers reads as ever: nothing else shows that it was replaced. */
const MAX_AGE_MS = 30_000;

interface Leaders {
  readonly atMs: number;
  readonly of: readonly (number | null)[];
  /** Rise with each election; -1: not told. */
  readonly epochs: readonly number[];
  isStale: boolean;
}

/** A connection for look-ups, which run side by side. */
interface Shared {
  readonly connection: BrokerConnection;
  users: number;
  isRetired: boolean;
}

export function createClusterMap(options: KafkaClientOptions, courtesy?: Courtesy): ClusterMap {
  const { clock } = options;
  const seeds = parseBrokers(options.brokers);
  const closing = new AbortController();
  const topics = new Map<string, Leaders>();
  const asking = new Map<string, Promise<Leaders>>();
  let nodes = new Map<number, Address>();
  let controllerNode = -1;
  const open = new Set<Shared>();
  let current: Shared | null = null;
  let turn = 0;
  const turns = new Map<string, number>();

  const retire = (shared: Shared): void => {
    shared.isRetired = true;
    if (shared.users > 0) return;
    shared.connection.destroy();
    open.delete(shared);
  };

  /** The one in use is given up; who waits for an answer on it still gets it. */
  const nextConnection = (place = turn++): Shared => {
    if (current !== null) retire(current);
    const known = [...nodes.values()];
    const all = [...seeds, ...known.filter((a) => !seeds.some((b) => a.host === b.host && a.port === b.port))];
    const address = all[place % all.length];
    if (address === undefined) throw new TypeError('no brokers');
    current = { connection: openConnection(options, address, courtesy), users: 0, isRetired: false };
    open.add(current);
    return current;
  };

  /** One round over the brokers that are known. */
  const callAny = async <T>(call: WireCall<T>, timeoutMs: number): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      if (closing.signal.aborted) throw new KafkaFailure('closed', 'the log is closed');
      const used = current ?? nextConnection();
      used.users++;
      try {
        return await used.connection.call(call, timeoutMs);
      } catch (error) {
        if (current === used) current = null;
        used.isRetired = true;
        if (closing.signal.aborted || !isPassing(error) || attempt >= seeds.length + nodes.size) throw error;
      } finally {
        used.users--;
        if (used.isRetired) retire(used);
      }
    }
  };

  const metadata: ClusterMap['metadata'] = async (names, asksRights) => {
    const answer = await callAny(metadataCall(names, asksRights), METADATA_TIMEOUT_MS);
    if (answer.brokers.length > 0) nodes = new Map(answer.brokers.map((broker) => [broker.node, broker]));
    controllerNode = answer.controller;
    for (const { error, name, partitions } of answer.topics) {
      if (error !== 0 && partitions.length === 0) continue;
      const known = topics.get(name);
      const of: (number | null)[] = [];
      const epochs: number[] = [];
      for (const { partition, leader, leaderEpoch } of partitions) {
        // Said by a broker that is cut off from the cluster. A topic that was made anew begins at 0 again, but then its
        // former leader refuses, and what is known of it is stale.
        const isOld = known?.isStale === false && leaderEpoch >= 0 && leaderEpoch < (known.epochs[partition] ?? -1);
        of[partition] = isOld ? (known.of[partition] ?? null) : leader >= 0 ? leader : null;
        epochs[partition] = isOld ? (known.epochs[partition] ?? -1) : leaderEpoch;
      }
      topics.set(name, { atMs: clock.monoMs(), of, epochs, isStale: false });
    }
    return answer;
  };

  const refresh = (topic: string): Promise<Leaders> => {
    const running = asking.get(topic);
    if (running !== undefined) return running;
    const asked = (async () => {
      const known = topics.get(topic);
      if (known !== undefined) {
        const ageMs = clock.monoMs() - known.atMs;
        if (ageMs < LEAST_AGE_MS) await sleep(clock, LEAST_AGE_MS - ageMs, closing.signal);
        // Another broker: one that is cut off from the cluster would say for ever what it said last. Each topic goes round
        // by itself: with one turn for all, as many topics as brokers would ask the same one each time.
        const place = (turns.get(topic) ?? turn) + 1;
        turns.set(topic, place);
        nextConnection(place);
      }
      const answer = await metadata([topic]);
      const denied = answer.topics.find(({ name, error }) => name === topic && isDenial(error));
      if (denied !== undefined)
        throw brokerFailure('Metadata', denied.error, { resource: 'topic', name: topic, operation: 'Describe' });
      const leaders = topics.get(topic);
      if (leaders === undefined || leaders.isStale)
        throw new KafkaFailure('no-leader', `the cluster knows no topic ${topic}`);
      return leaders;
    })();
    asking.set(topic, asked);
    const done = (): void => {
      asking.delete(topic);
    };
    asked.then(done, done);
    return asked;
  };

  return {
    async leaderOf(topic, partition) {
      const known = topics.get(topic);
      const isFresh = known !== undefined && !known.isStale && clock.monoMs() - known.atMs < MAX_AGE_MS;
      const leaders = isFresh ? known : await refresh(topic);
      const node = leaders.of[partition] ?? null;
      const address = node === null ? undefined : nodes.get(node);
      if (address === undefined) {
        leaders.isStale = true;
        throw new KafkaFailure('no-leader', `${topic} ${partition} has no leader now`);
      }
      return address;
    },
    forget(topic) {
      const known = topics.get(topic);
      if (known !== undefined) known.isStale = true;
    },
    metadata,
    callAny,
    async callController(call, timeoutMs) {
      if (controllerNode < 0) await metadata([]);
      const address = nodes.get(controllerNode);
      if (address === undefined) return await callAny(call, timeoutMs);
      const own = openConnection(options, address, courtesy);
      try {
        return await own.call(call, timeoutMs);
      } finally {
        own.destroy();
      }
    },
    close() {
      closing.abort();
      for (const { connection } of open) connection.destroy();
      open.clear();
      current = null;
    },
  };
}
