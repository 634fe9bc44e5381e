/**
 * Appends with group commit: what waits for one partition goes in one request, one request a partition at a time, each
 * on a producer that no other partition uses meanwhile. So a partition that stalls delays no other.
 */
import type { RecordInput } from '@throughline/protocol';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import type { Appended } from '../port.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { LanePool } from './lanes.ts';
import type { Producer } from './producer.ts';

export interface AppenderOptions {
  readonly clock: Clock;
  readonly map: ClusterMap;
  readonly producers: LanePool<Producer>;
  /** Bytes of one batch, framing included, that every topic takes. */
  readonly maxBatchBytes: number;
  readonly maxQueuedBytes: number;
  readonly appendTimeoutMs: number;
}

export interface Appender {
  append(topic: string, partition: number, records: readonly RecordInput[], framedBytes: number): Promise<Appended>;
  /** Refuses what waits, and gives what is under way at most `graceMs`. */
  close(graceMs: number): Promise<void>;
  /** As a kill of the process: nothing is waited for. */
  crash(): void;
}

interface Waiting {
  readonly records: readonly RecordInput[];
  readonly bytes: number;
  readonly untilMs: number;
  resolve(appended: Appended): void;
  reject(error: LogError): void;
}

interface Queue {
  readonly topic: string;
  readonly partition: number;
  waiting: Waiting[];
  isBusy: boolean;
}

/** Coalescing stops here, so that no ack waits for a very large request; one larger append goes alone. */
const COALESCED_BYTES = 1024 * 1024;
const COALESCED_RECORDS = 10_000;
/** An append that has less time than this until its deadline is not sent. */
const LEAST_LEFT_MS = 250;

export function createAppender(options: AppenderOptions): Appender {
  const { clock, producers } = options;
  const queues = new Map<string, Queue>();
  const batchBytes = Math.min(COALESCED_BYTES, options.maxBatchBytes);
  const leastMs = Math.min(LEAST_LEFT_MS, options.appendTimeoutMs / 4);
  let queuedBytes = 0;
  let isClosed = false;
  let underWay = 0;
  let onQuiet = (): void => undefined;

  const takeBatch = (queue: Queue): Waiting[] => {
    const batch: Waiting[] = [];
    let bytes = 0;
    let records = 0;
    for (const entry of queue.waiting) {
      bytes += entry.bytes;
      records += entry.records.length;
      if (batch.length > 0 && (bytes > batchBytes || records > COALESCED_RECORDS)) break;
      batch.push(entry);
    }
    queue.waiting = queue.waiting.slice(batch.length);
    return batch;
  };

  /** What waited too long behind others is not sent any more: it would only end in doubt. */
  const dropLate = (queue: Queue): void => {
    const nowMs = clock.monoMs() + leastMs;
    if (queue.waiting.every(({ untilMs }) => untilMs > nowMs)) return;
    const late = queue.waiting.filter(({ untilMs }) => untilMs <= nowMs);
    queue.waiting = queue.waiting.filter(({ untilMs }) => untilMs > nowMs);
    fail(late, new LogError('APPEND_REFUSED', 'the partition took no append in time', { reason: 'other' }));
  };

  const fail = (entries: readonly Waiting[], error: LogError): void => {
    for (const entry of entries) {
      queuedBytes -= entry.bytes;
      entry.reject(error);
    }
  };

  const store = async (queue: Queue, batch: readonly Waiting[]): Promise<void> => {
    const records = batch.length === 1 ? (batch[0]?.records ?? []) : batch.flatMap((entry) => entry.records);
    const untilMs = Math.min(...batch.map((entry) => entry.untilMs));
    try {
      // The leader is looked for here only to choose a producer that is connected to it.
      const address = await options.map.leaderOf(queue.topic, queue.partition).catch(() => ({ host: '', port: 0 }));
      const producer = await producers.take(address);
      let offset: number;
      let timestampMs: number;
      try {
        ({ baseOffset: offset, timestampMs } = await producer.produce(queue.topic, queue.partition, records, untilMs));
      } catch (error) {
        producers.discard(producer);
        throw error;
      }
      producers.giveBack(producer);
      for (const entry of batch) {
        queuedBytes -= entry.bytes;
        const first = offset;
        offset += entry.records.length;
        entry.resolve({ offsets: entry.records.map((_, index) => first + index), timestampMs });
      }
    } catch (error) {
      fail(
        batch,
        error instanceof LogError
          ? error
          : new LogError('APPEND_REFUSED', 'the log is closed', { reason: 'closed' }, error),
      );
    }
  };

  const run = async (queue: Queue): Promise<void> => {
    if (queue.isBusy) return;
    queue.isBusy = true;
    underWay++;
    while (queue.waiting.length > 0 && !isClosed) {
      dropLate(queue);
      const batch = takeBatch(queue);
      if (batch.length > 0) await store(queue, batch);
    }
    queue.isBusy = false;
    underWay--;
    if (underWay === 0) onQuiet();
  };

  const refuseWaiting = (): void => {
    isClosed = true;
    const error = new LogError('APPEND_REFUSED', 'the log was closed before it was sent', { reason: 'closed' });
    for (const queue of queues.values()) fail(queue.waiting.splice(0), error);
  };

  return {
    append(topic, partition, records, bytes) {
      if (queuedBytes + bytes > options.maxQueuedBytes)
        return Promise.reject(
          new LogError('APPEND_REFUSED', `more than ${options.maxQueuedBytes} bytes wait for their acks`, {
            reason: 'other',
          }),
        );
      const place = `${topic} ${partition}`;
      let queue = queues.get(place);
      if (queue === undefined) queues.set(place, (queue = { topic, partition, waiting: [], isBusy: false }));
      const own = queue;
      queuedBytes += bytes;
      return new Promise((resolve, reject) => {
        own.waiting.push({ records, bytes, untilMs: clock.monoMs() + options.appendTimeoutMs, resolve, reject });
        void run(own);
      });
    },
    async close(graceMs) {
      refuseWaiting();
      if (underWay > 0)
        await new Promise<void>((resolve) => {
          const cancel = clock.setTimer(graceMs, resolve);
          onQuiet = () => {
            cancel();
            resolve();
          };
        });
      producers.close();
    },
    crash() {
      refuseWaiting();
      producers.close();
    },
  };
}
