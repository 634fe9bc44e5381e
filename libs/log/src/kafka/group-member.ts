/**
 * A member of a consumer group: joins, divides partitions if it leads, heartbeats, joins again when the group changes.
 * It reads nothing: what a member reads, and from where, is not the group's business. The former assignment stands until
 * the new one is known, since every change of the group takes all members through a join.
 */
import type { Partition } from '@throughline/protocol';
import { sameAssignment } from '../assign-sticky.ts';
import { checkCommit } from '../check-append.ts';
import { deadline, sleep } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { errorText, LogError } from '../errors.ts';
import type { PartitionCount } from '../partition-count.ts';
import type { JoinOptions, Membership } from '../port.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { decodeMemberData, dividePartitions, encodeMemberData } from './divide-partitions.ts';
import { brokerFailure, isDenial, isPassing, KafkaFailure, toLogError } from './kafka-failure.ts';
import type { KafkaLogEvent } from './options.ts';
import { KAFKA_ERRORS } from './wire/call.ts';
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  findCoordinatorCall,
  heartbeatCall,
  joinGroupCall,
  leaveGroupCall,
  offsetCommitCall,
  syncGroupCall,
} from './wire/group.ts';

export interface GroupContext {
  readonly clock: Clock;
  readonly map: ClusterMap;
  open(address: Address): BrokerConnection;
  /** `<prefix>.inbound`. */
  readonly topic: string;
  readonly count: PartitionCount;
  readonly sessionTimeoutMs: number;
  onLog(event: KafkaLogEvent): void;
  isClosed(): boolean;
}

/** Member of the group in its present generation. */
interface Seat {
  readonly group: string;
  readonly memberId: string;
  readonly generation: number;
}

const PROTOCOL = 'throughline-sticky';
const ANSWER_MS = 5000;
const LEAST_ANSWER_MS = 1000;
const LEAVE_MS = 2000;
const FIRST_SEAT_MS = 30_000;
const RETRY_MS = 250;
/** After a failure that does not pass by itself. */
const REFUSED_RETRY_MS = 5000;
const TELL_AGAIN_MS = 30_000;

export interface GroupHandle {
  readonly membership: Membership;
  /** As a kill of the process: the group is not told. */
  crash(): void;
}

/** Resolves with the first assignment. Errors: `LOG_UNAVAILABLE`, `NOT_AUTHENTICATED`, `NOT_AUTHORIZED`. */
export async function joinGroup(context: GroupContext, options: JoinOptions): Promise<GroupHandle> {
  const { clock, map, topic } = context;
  const { group, member } = options;
  const heartbeatMs = Math.max(50, Math.min(1000, Math.floor(context.sessionTimeoutMs / 10)));
  // A coordinator that stands still has to be left, and its successor found, before that one gives the seat up.
  const answerMs = Math.min(ANSWER_MS, Math.max(LEAST_ANSWER_MS, Math.floor(context.sessionTimeoutMs / 3)));
  const life = new AbortController();
  let connection: BrokerConnection | null = null;
  let seat: Seat = { group, memberId: '', generation: -1 };
  let assigned: readonly Partition[] = [];
  let ownedGeneration = -1;
  /** Of how many partitions the present division is, if this member made it. */
  let dividedOf: number | null = null;
  let onSeat: (() => void) | null = null;
  let onRefusal: ((error: LogError) => void) | null = null;
  let lastError: unknown = null;
  const needs = { resource: 'group', name: group, operation: 'Read' } as const;

  const disconnect = (): void => {
    connection?.destroy();
    connection = null;
  };

  const toCoordinator = async (): Promise<BrokerConnection> => {
    if (connection !== null) return connection;
    const found = await map.callAny(findCoordinatorCall(group), answerMs);
    if (found.error !== 0) throw brokerFailure(`FindCoordinator of ${group}`, found.error, needs);
    if (life.signal.aborted) throw new KafkaFailure('closed', 'the member has left');
    connection = context.open(found);
    return connection;
  };

  const takeSeat = async (): Promise<void> => {
    const coordinator = await toCoordinator();
    const said = { member, generation: ownedGeneration, owned: assigned };
    const joined = await coordinator.call(
      joinGroupCall({
        group,
        memberId: seat.memberId,
        sessionTimeoutMs: context.sessionTimeoutMs,
        rebalanceTimeoutMs: context.sessionTimeoutMs,
        protocol: PROTOCOL,
        metadata: encodeSubscription(topic, encodeMemberData(said)),
      }),
      context.sessionTimeoutMs + ANSWER_MS,
    );
    if (joined.error === KAFKA_ERRORS.MEMBER_ID_REQUIRED) {
      seat = { group, memberId: joined.memberId, generation: -1 };
      await takeSeat();
      return;
    }
    if (joined.error !== 0) throw brokerFailure(`JoinGroup ${group}`, joined.error, needs);
    seat = { group, memberId: joined.memberId, generation: joined.generation };
    const plan = new Map<string, Buffer>();
    const isLeader = joined.leader === joined.memberId;
    const partitions = context.count.known();
    dividedOf = isLeader ? partitions : null;
    if (isLeader) {
      const members = joined.members.map(({ memberId, metadata }) => ({
        memberId,
        said: decodeMemberData(decodeSubscription(metadata)),
      }));
      for (const [memberId, share] of dividePartitions(members, partitions))
        plan.set(memberId, encodeAssignment(topic, share));
    }
    const synced = await coordinator.call(syncGroupCall(seat, plan), context.sessionTimeoutMs + ANSWER_MS);
    if (synced.error !== 0) throw brokerFailure(`SyncGroup ${group}`, synced.error, needs);
    if (life.signal.aborted) return;
    ownedGeneration = joined.generation;
    tell(decodeAssignment(synced.assignment, topic));
    onSeat?.();
  };

  const tell = (next: readonly Partition[]): void => {
    if (sameAssignment(assigned, next)) return;
    assigned = next;
    // The leader may have heard of new partitions sooner.
    context.count.learn(Math.max(-1, ...next) + 1);
    options.onChange(next);
  };

  /** Ends by a failure, which says why the seat has to be taken again; and when the leader knows of more partitions than it divided: all join again when it does. */
  const keepSeat = async (): Promise<void> => {
    while (await sleep(clock, heartbeatMs, life.signal)) {
      if (dividedOf !== null && dividedOf < context.count.known()) return;
      const coordinator = await toCoordinator();
      const { error } = await coordinator.call(heartbeatCall(seat), answerMs);
      if (error !== 0) throw brokerFailure(`Heartbeat ${group}`, error, needs);
    }
  };

  let told = { text: '', atMs: -Infinity };
  /** What stays the same is told once, and now and then again. */
  const tellFailure = (error: unknown, level: 'warn' | 'error'): void => {
    const text = errorText(error);
    if (text === told.text && clock.monoMs() - told.atMs < TELL_AGAIN_MS) return;
    told = { text, atMs: clock.monoMs() };
    context.onLog({
      level,
      message: 'the seat in the group was lost, or not given; trying again',
      fields: { group, member, error: text },
    });
  };

  const run = async (): Promise<void> => {
    while (!life.signal.aborted) {
      try {
        await takeSeat();
        await keepSeat();
      } catch (error) {
        if (life.signal.aborted) return;
        lastError = error;
        const code = error instanceof KafkaFailure ? error.brokerError : 0;
        // The group changes: join again at once.
        if (code === KAFKA_ERRORS.REBALANCE_IN_PROGRESS) continue;
        const isForgotten = code === KAFKA_ERRORS.UNKNOWN_MEMBER_ID || code === KAFKA_ERRORS.ILLEGAL_GENERATION;
        if (isForgotten) seat = { group, memberId: '', generation: -1 };
        else disconnect();
        tellFailure(error, isForgotten || isPassing(error) ? 'warn' : 'error');
        const refusal = refusalOf(error, context.sessionTimeoutMs);
        if (refusal !== null) onRefusal?.(refusal);
        await sleep(clock, refusal === null ? RETRY_MS : REFUSED_RETRY_MS, life.signal);
      }
    }
  };

  const stop = (): void => {
    life.abort();
    disconnect();
    assigned = [];
  };

  let leaving: Promise<void> | null = null;
  const leave = async (): Promise<void> => {
    stop();
    await running;
    if (seat.memberId === '') return;
    let goodbye: BrokerConnection | null = null;
    try {
      const found = await map.callAny(findCoordinatorCall(group), LEAVE_MS);
      goodbye = context.open(found);
      await goodbye.call(leaveGroupCall(seat), LEAVE_MS);
    } catch (error) {
      // The group notices by itself, when the session runs out.
      context.onLog({
        level: 'warn',
        message: 'the group could not be told that a member leaves',
        fields: { group, member, error: errorText(error) },
      });
    } finally {
      goodbye?.destroy();
    }
  };

  const membership: Membership = {
    member,
    assigned: () => assigned,
    leave() {
      leaving ??= leave();
      return leaving;
    },
    async commit(partition, offset) {
      const unavailable = (message: string, cause?: unknown): LogError =>
        new LogError('LOG_UNAVAILABLE', message, {}, cause);
      if (context.isClosed()) throw new LogError('CLOSED', 'the log is closed');
      // The broker would take it from any member of the generation.
      checkCommit(assigned, partition, offset);
      if (connection === null) throw unavailable('the group cannot be reached now');
      const answer = await connection
        .call(offsetCommitCall(seat, topic, partition, offset), ANSWER_MS)
        .catch((error: unknown) => {
          throw unavailable('the commit failed', error);
        });
      if (answer.error === 0) return;
      const onTopic = { resource: 'topic', name: topic, operation: 'Read' } as const;
      const isOfTopic = answer.error === KAFKA_ERRORS.TOPIC_AUTHORIZATION_FAILED;
      const failure = brokerFailure('OffsetCommit', answer.error, isOfTopic ? onTopic : needs);
      throw refusalOf(failure, context.sessionTimeoutMs) ?? unavailable('the commit failed', failure);
    },
  };

  const running = run();
  const limit = deadline(clock, FIRST_SEAT_MS);
  try {
    await new Promise<void>((resolve, reject) => {
      onSeat = resolve;
      onRefusal = reject;
      if (ownedGeneration >= 0) resolve();
      limit.signal.addEventListener('abort', () => {
        reject(new LogError('LOG_UNAVAILABLE', `no seat in group ${group}`, {}, lastError));
      });
    });
  } catch (error) {
    stop();
    throw error;
  } finally {
    limit.dispose();
    onSeat = null;
    onRefusal = null;
  }
  return { membership, crash: stop };
}

/** What stays as it is until somebody changes rights, credentials or settings; `null`: it may pass. */
function refusalOf(error: unknown, sessionTimeoutMs: number): LogError | null {
  if (!(error instanceof KafkaFailure)) return null;
  if (error.brokerError === KAFKA_ERRORS.INVALID_SESSION_TIMEOUT)
    return new LogError(
      'LOG_INCOMPATIBLE',
      `the brokers take no session timeout of ${sessionTimeoutMs} ms (--lease): 6 s to 30 min, unless group.min.session.timeout.ms and group.max.session.timeout.ms say otherwise`,
      {},
      error,
    );
  return error.kind === 'authentication' || isDenial(error.brokerError) ? toLogError(error) : null;
}
