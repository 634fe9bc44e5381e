/**
 * A producer: one producer id, one connection, one batch at a time. Within one append it tries again with the same
 * sequence number, so that the broker stores it once. After an append that did not succeed nobody knows which sequence
 * number is next: the producer must be thrown away, or the broker takes the next append for the former one and
 * acknowledges what is not in the log.
 */
import type { Offset, RecordInput } from '@throughline/protocol';
import { sleep } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { errorText, LogError } from '../errors.ts';
import type { LogErrorDetails } from '../errors.ts';
import type { Acl } from './acls.ts';
import { nameAcl } from './acls.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { brokerFailure, deniedFailure, isDenial, isPassing, KafkaFailure } from './kafka-failure.ts';
import type { Lane } from './lanes.ts';
import { makeLane } from './lanes.ts';
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';
import { encodeBatch } from './wire/record-batch.ts';
import { initProducerCall, produceCall } from './wire/records.ts';

export interface Stored {
  readonly baseOffset: Offset;
  readonly timestampMs: number;
}

export interface Producer extends Lane {
  /**
   * Appends one batch. Rejects with `APPEND_REFUSED` if it is certainly not in the log, else with `APPEND_UNKNOWN`;
   * after either, the producer is of no use any more.
   */
  produce(topic: string, partition: number, records: readonly RecordInput[], untilMs: number): Promise<Stored>;
}

/** What a test makes of the appends of a log: a refusal, an answer that is lost, a request that is, or a broker that says nothing. */
export type ProduceFault = 'refused' | 'unknown-stored' | 'unknown-lost' | 'unanswered';

export interface ProducerContext {
  readonly clock: Clock;
  readonly map: ClusterMap;
  open(address: Address): BrokerConnection;
  /** The timestamp in the log; asked for when an answer may speak of an earlier attempt. */
  readTimestamp(topic: string, partition: number, offset: Offset): Promise<number>;
  fault(topic: string, partition: number): ProduceFault | null;
  /** Milliseconds that a quota of the broker makes appends wait. */
  throttledMs(address: Address): number;
}

/** The broker gives up waiting for replicas after this, and we try again. */
const ACK_TIMEOUT_MS = 5000;
const ANSWER_MS = 8000;
const LEAST_ANSWER_MS = 250;
const RETRY_MS = { first: 20, most: 500 } as const;

/** Said before anything was written; an append whose only attempts ended so is not in the log. */
const NOT_STORED: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.MESSAGE_TOO_LARGE,
  KAFKA_ERRORS.RECORD_LIST_TOO_LARGE,
  KAFKA_ERRORS.INVALID_TOPIC,
  KAFKA_ERRORS.NOT_ENOUGH_REPLICAS,
  KAFKA_ERRORS.TOPIC_AUTHORIZATION_FAILED,
  KAFKA_ERRORS.CLUSTER_AUTHORIZATION_FAILED,
  KAFKA_ERRORS.POLICY_VIOLATION,
  KAFKA_ERRORS.INVALID_RECORD,
]);

export function makeProducer(context: ProducerContext): { readonly lane: Producer; destroy(): void } {
  const { clock, map } = context;
  const { lane, destroy } = makeLane(context.open);
  const sequences = new Map<string, number>();
  let identity: { readonly id: bigint; readonly epoch: number } | null = null;
  const life = new AbortController();

  const identify = async (connection: BrokerConnection, needs: Acl): Promise<NonNullable<typeof identity>> => {
    const { error, producerId, producerEpoch } = await connection.call(initProducerCall(), ANSWER_MS);
    // Who may write to some topic may have a producer id. Nothing of the append was sent so far.
    if (isDenial(error)) throw deniedFailure([needs], error);
    if (error !== 0) throw new KafkaFailure('broker', `InitProducerId: ${nameOfError(error)}`, { brokerError: error });
    return { id: producerId, epoch: producerEpoch };
  };

  const produce: Producer['produce'] = async (topic, partition, records, untilMs) => {
    const place = `${topic} ${partition}`;
    const needs = { resource: 'topic', name: topic, operation: 'Write' } as const;
    const firstSequence = sequences.get(place) ?? 0;
    // Kept over attempts: an append that is tried again must be the same batch.
    const timestampMs = clock.wallMs();
    let batch: Buffer | null = null;
    let isInDoubt = false;
    let attempts = 0;
    let pauseMs: number = RETRY_MS.first;
    /** What is told in the end: the newest failure that is not merely what another one led to. */
    let cause: unknown = null;
    for (;;) {
      try {
        const address = await map.leaderOf(topic, partition);
        if (clock.monoMs() + context.throttledMs(address) >= untilMs)
          throw new KafkaFailure('quota', 'the quota of this client is used up for longer than the append may wait');
        const connection = lane.to(address);
        identity ??= await identify(connection, needs);
        batch ??= encodeBatch(records, {
          producerId: identity.id,
          producerEpoch: identity.epoch,
          firstSequence,
          timestampMs,
        });
        attempts++;
        const patienceMs = Math.min(ANSWER_MS, Math.max(LEAST_ANSWER_MS, untilMs - clock.monoMs()));
        const { error, baseOffset, appendTimeMs } = await send(connection, topic, partition, batch, patienceMs);
        if (error !== 0) throw brokerFailure(`Produce to ${place}`, error, needs);
        if (baseOffset < 0) throw new KafkaFailure('answer', 'an ack without an offset', { wasSent: true });
        sequences.set(place, (firstSequence + records.length) % 2 ** 31);
        // An ack of a second attempt may be the broker's memory of the first.
        if (attempts > 1) return { baseOffset, timestampMs: await context.readTimestamp(topic, partition, baseOffset) };
        return { baseOffset, timestampMs: appendTimeMs >= 0 ? appendTimeMs : timestampMs };
      } catch (error) {
        isInDoubt ||= mayBeStored(error);
        if (cause === null || !isConsequence(error)) cause = error;
        const isOver = clock.monoMs() + pauseMs >= untilMs || life.signal.aborted;
        if (!isPassing(error) || isOver) throw giveUp(cause, isInDoubt);
        map.forget(topic);
        if (!(await sleep(clock, pauseMs, life.signal))) throw giveUp(cause, isInDoubt);
        pauseMs = Math.min(pauseMs * 2, RETRY_MS.most);
      }
    }
  };

  const send = async (
    connection: BrokerConnection,
    topic: string,
    partition: number,
    batch: Buffer,
    patienceMs: number,
  ): Promise<{ error: number; baseOffset: Offset; appendTimeMs: number }> => {
    const fault = context.fault(topic, partition);
    if (fault === 'refused') throw new KafkaFailure('broker', 'refused by a test', { brokerError: NOT_STORED_FAULT });
    if (fault === 'unknown-lost') throw new KafkaFailure('answer', 'lost by a test', { wasSent: true });
    if (fault === 'unanswered') {
      await sleep(clock, patienceMs, life.signal);
      throw new KafkaFailure('timeout', 'left unanswered by a test', { wasSent: true });
    }
    const call = produceCall(topic, partition, batch, Math.min(ACK_TIMEOUT_MS, patienceMs));
    const answer = await connection.call(call, patienceMs);
    if (fault === 'unknown-stored') throw new KafkaFailure('answer', 'its answer lost by a test', { wasSent: true });
    return answer;
  };

  return {
    lane: { ...lane, produce },
    destroy() {
      life.abort();
      destroy();
    },
  };
}

const NOT_STORED_FAULT = KAFKA_ERRORS.POLICY_VIOLATION;

function mayBeStored(error: unknown): boolean {
  if (!(error instanceof KafkaFailure)) return true;
  return error.kind === 'broker' ? error.wasSent && !NOT_STORED.has(error.brokerError) : error.wasSent;
}

/** A leader that is not found, or an answer that is late, says less than the failure before it. */
function isConsequence(error: unknown): boolean {
  return (
    error instanceof KafkaFailure && (error.kind === 'no-leader' || error.kind === 'timeout' || error.kind === 'closed')
  );
}

function giveUp(error: unknown, isInDoubt: boolean): LogError {
  const message = errorText(error);
  if (isInDoubt) return new LogError('APPEND_UNKNOWN', `the append may be in the log: ${message}`, {}, error);
  return new LogError(
    'APPEND_REFUSED',
    `the cluster did not take the append: ${message}`,
    error instanceof KafkaFailure ? refusalOf(error) : { reason: 'other' },
    error,
  );
}

function refusalOf({ kind, brokerError, missing }: KafkaFailure): LogErrorDetails {
  if (kind === 'authentication') return { reason: 'not-authenticated' };
  if (isDenial(brokerError)) return { reason: 'not-authorized', missing: missing.map(nameAcl) };
  const isTooLarge =
    brokerError === KAFKA_ERRORS.MESSAGE_TOO_LARGE || brokerError === KAFKA_ERRORS.RECORD_LIST_TOO_LARGE;
  return { reason: isTooLarge ? 'too-large' : 'other' };
}
