/** The log on a Kafka cluster, as callers see it. */
import { checkAppend, checkPosition, checkRef } from '../check-append.ts';
import { LogError } from '../errors.ts';
import type { Log, LogDescription, PartitionRef } from '../port.ts';
import { DEFAULT_READ_BYTES } from '../record-size.ts';
import { createAppender } from './appender.ts';
import { checkTopics } from './check-topics.ts';
import { createClusterMap } from './cluster-map.ts';
import { fetchCommitted } from './committed-offsets.ts';
import { PartitionCount } from '../partition-count.ts';
import { createCourtesy } from './courtesy.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { openConnection } from './connection.ts';
import { createGrowth } from './growth.ts';
import type { GroupHandle } from './group-member.ts';
import { joinGroup } from './group-member.ts';
import { toLogError } from './kafka-failure.ts';
import { createLanePool, makeLane } from './lanes.ts';
import type { KafkaLogEvent, KafkaLogOptions } from './options.ts';
import type { ProduceFault, Producer } from './producer.ts';
import { makeProducer } from './producer.ts';
import type { ReaderContext } from './reader.ts';
import { createReadSources } from './read-sources.ts';
import { findBounds, readPartition } from './reader.ts';
import { checkPrefix, DEFAULT_PREFIX, groupName, topicName } from './topic-names.ts';
import { DEFAULT_RETENTION_MS } from './topic-settings.ts';
import { BATCH_OVERHEAD, framedBytes } from './wire/record-batch.ts';

/** The log of the port, with nothing of its own. */
export type KafkaLog = Log;

/** For tests and drills. */
export interface KafkaControls {
  /** How appends of this handle, or those to one partition, end from now on; `null`: as they should. */
  inject(fault: ProduceFault | null, only?: PartitionRef): void;
  /** Stops as a kill of the process would: nobody is told, nothing is waited for. */
  crash(): void;
  /** Connections by purpose. */
  connections(): { readonly tails: number; readonly lookups: number; readonly producers: number };
}

/** A reader in use polls all the time; far above the partitions that one process follows. */
const MOST_TAILS = 1024;
const MOST_LOOKUPS = 4;
const CLOSE_GRACE_MS = 3000;
/** What frames a record in a batch: kept free below `max.message.bytes`. A record with hundreds of headers needs more, and is checked by its exact size. */
const FRAMING_RESERVE = 4096;

/**
 * Opens the log of a prefix. The topics must be there: see {@link applyTopics}. Kafka holds records by whole segments, so
 * they may stay longer than `retentionMs`.
 * Errors: `LOG_UNAVAILABLE` (no broker answers), `NOT_AUTHENTICATED`, `NOT_AUTHORIZED` (with all rights on topics that
 * `roles` miss), `LOG_INCOMPATIBLE` (topics missing or set so that records would get lost; `details.cure` names the fix).
 */
export async function openKafkaLog(options: KafkaLogOptions): Promise<KafkaLog> {
  return (await openKafkaLogWithControls(options)).log;
}

export async function openKafkaLogWithControls(
  options: KafkaLogOptions,
): Promise<{ log: KafkaLog; controls: KafkaControls }> {
  const { clock } = options;
  const prefix = options.prefix ?? DEFAULT_PREFIX;
  checkPrefix(prefix);
  const onLog = (event: KafkaLogEvent): void => options.onLog?.(event);
  const courtesy = createCourtesy(clock);
  const sources = createReadSources();
  const open = (address: Address): BrokerConnection => openConnection(options, address, courtesy, sources.noteLoss);
  const map = createClusterMap(options, courtesy);
  const facts = await checkTopics(map, prefix, options.roles ?? [], onLog).catch((error: unknown) => {
    map.close();
    throw toLogError(error, `no broker of ${options.brokers.join(', ')} answers`);
  });
  const count = new PartitionCount(facts.partitions);
  const growth = createGrowth({ clock, map, prefix, count, onLog, onMadeAnew: sources.noteMadeAnew });
  const description: LogDescription = {
    clusterId: facts.clusterId,
    driver: 'kafka',
    get partitions() {
      return count.known();
    },
    maxRecordBytes: Math.max(1, facts.maxMessageBytes - BATCH_OVERHEAD - FRAMING_RESERVE),
    retentionMs: facts.retentionMs ?? options.retentionMs ?? DEFAULT_RETENTION_MS,
  };

  const closing = new AbortController();
  const reader: ReaderContext = {
    clock,
    map,
    sources,
    tails: createLanePool(
      clock,
      () => MOST_TAILS,
      () => makeLane(open),
    ),
    lookups: createLanePool(
      clock,
      () => MOST_LOOKUPS,
      () => makeLane(open),
    ),
    readTimeoutMs: options.readTimeoutMs ?? 5000,
    closing: closing.signal,
  };
  let fault: { readonly kind: ProduceFault; readonly only: PartitionRef | undefined } | null = null;
  const faultAt = (topic: string, partition: number): ProduceFault | null => {
    if (fault === null) return null;
    const { kind, only } = fault;
    const isMeant = only === undefined || (topicName(prefix, only.topic) === topic && only.partition === partition);
    return isMeant ? kind : null;
  };
  const producers = createLanePool<Producer>(
    clock,
    () => 3 * count.known() + 2,
    () =>
      makeProducer({
        clock,
        map,
        open,
        fault: faultAt,
        throttledMs: (address) => courtesy.appendThrottledMs(address),
        async readTimestamp(topic, partition, position) {
          const request = { topic, partition, position, maxBytes: 1, waitMs: 0, signal: undefined };
          const { records } = await readPartition(reader, request);
          const [record] = records;
          if (record?.offset !== position)
            throw new LogError('APPEND_UNKNOWN', `an append was acknowledged at ${position}, and is not there`);
          return record.timestampMs;
        },
      }),
  );
  const appender = createAppender({
    clock,
    map,
    producers,
    maxBatchBytes: facts.maxMessageBytes - BATCH_OVERHEAD,
    maxQueuedBytes: options.maxQueuedBytes ?? 128 * 1024 * 1024,
    appendTimeoutMs: options.appendTimeoutMs ?? 15_000,
  });
  const groups = new Set<GroupHandle>();

  const checkOpen = (): void => {
    if (closing.signal.aborted) throw new LogError('CLOSED', 'the log is closed');
  };
  const nameOf = (ref: PartitionRef): string => {
    checkRef(ref, count.known());
    return topicName(prefix, ref.topic);
  };
  const freeReaders = (): void => {
    growth.stop();
    reader.tails.close();
    reader.lookups.close();
    map.close();
  };
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    closing.abort();
    const leaving = Promise.all([...groups].map(({ membership }) => membership.leave()));
    await Promise.all([leaving, appender.close(CLOSE_GRACE_MS)]);
    freeReaders();
  };

  const log: KafkaLog = {
    description,
    async describe() {
      checkOpen();
      await growth.look().catch((error: unknown) => {
        checkOpen();
        throw toLogError(error, 'the cluster does not say what topics it has');
      });
      return description;
    },
    onGrown(listener) {
      growth.watch();
      return count.onGrown(listener);
    },
    async append(to, records) {
      checkOpen();
      const topic = nameOf(to);
      checkAppend(to, records, description);
      const bytes = records.reduce((sum, record) => sum + framedBytes(record), 0);
      // One append is one batch, all or none: it cannot be split.
      if (bytes + BATCH_OVERHEAD > facts.maxMessageBytes)
        throw new LogError(
          'APPEND_REFUSED',
          `an append of ${bytes} bytes is larger than a batch of ${facts.maxMessageBytes} bytes may be`,
          { reason: 'too-large' },
        );
      return await appender.append(topic, to.partition, records, bytes);
    },
    async read(from, position, { maxBytes = DEFAULT_READ_BYTES, waitMs = 0, signal } = {}) {
      checkOpen();
      const topic = nameOf(from);
      checkPosition(position);
      if (signal?.aborted) throw new LogError('ABORTED', 'the read was aborted');
      return await readPartition(reader, { topic, partition: from.partition, position, maxBytes, waitMs, signal });
    },
    async bounds(of) {
      checkOpen();
      return await findBounds(reader, { topic: nameOf(of), partition: of.partition });
    },
    async join(joining) {
      checkOpen();
      growth.watch();
      const handle = await joinGroup(
        {
          clock,
          map,
          open,
          onLog,
          isClosed: () => closing.signal.aborted,
          topic: topicName(prefix, 'inbound'),
          count,
          sessionTimeoutMs: options.sessionTimeoutMs ?? 8000,
        },
        { ...joining, group: groupName(prefix, joining.group) },
      );
      groups.add(handle);
      if (closing.signal.aborted) {
        await handle.membership.leave();
        checkOpen();
      }
      return handle.membership;
    },
    async committed(group) {
      checkOpen();
      return await fetchCommitted({ map, open }, groupName(prefix, group), topicName(prefix, 'inbound'), count.known());
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
  return {
    log,
    controls: {
      inject(kind, only) {
        fault = kind === null ? null : { kind, only };
      },
      crash() {
        closing.abort();
        closed ??= Promise.resolve();
        for (const { crash } of groups) crash();
        appender.crash();
        freeReaders();
      },
      connections: () => ({
        tails: reader.tails.size(),
        lookups: reader.lookups.size(),
        producers: producers.size(),
      }),
    },
  };
}
