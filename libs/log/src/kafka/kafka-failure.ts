/** How a request to a broker failed, inside of this driver. Callers of the log see `LogError` only. */
import { errorText, LogError } from '../errors.ts';
import type { Acl } from './acls.ts';
import { aclArguments, nameAcl } from './acls.ts';
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';

export type FailureKind =
  'connection' | 'timeout' | 'authentication' | 'closed' | 'no-leader' | 'quota' | 'broker' | 'answer';

export class KafkaFailure extends Error {
  override readonly name = 'KafkaFailure';
  readonly kind: FailureKind;
  /** Kafka's error code, for `broker`. */
  readonly brokerError: number;
  /** The request may have reached the broker. */
  readonly wasSent: boolean;
  /** What has to be allowed, if the broker said that something is not. */
  readonly missing: readonly Acl[];

  constructor(
    kind: FailureKind,
    message: string,
    details: {
      readonly brokerError?: number;
      readonly wasSent?: boolean;
      readonly missing?: readonly Acl[];
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.brokerError = details.brokerError ?? 0;
    this.wasSent = details.wasSent ?? false;
    this.missing = details.missing ?? [];
  }
}

const DENIALS: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.TOPIC_AUTHORIZATION_FAILED,
  KAFKA_ERRORS.GROUP_AUTHORIZATION_FAILED,
  KAFKA_ERRORS.CLUSTER_AUTHORIZATION_FAILED,
]);

/** The broker says that this process may not do it. */
export function isDenial(brokerError: number): boolean {
  return DENIALS.has(brokerError);
}

/** `needs`: the right that the request takes, named where it is missing. */
export function brokerFailure(what: string, code: number, needs?: Acl): KafkaFailure {
  if (isDenial(code) && needs !== undefined) return deniedFailure([needs], code);
  return new KafkaFailure('broker', `${what}: ${nameOfError(code)}`, { brokerError: code, wasSent: true });
}

export function deniedFailure(missing: readonly Acl[], brokerError: number): KafkaFailure {
  const ways = missing.map((acl) => `kafka-acls.sh ${aclArguments(acl)}`).join('; ');
  return new KafkaFailure('broker', `not allowed: ${missing.map(nameAcl).join(', ')}. Add: ${ways}`, {
    brokerError,
    wasSent: true,
    missing,
  });
}

/** What callers of the log see, unless they know more. `what`: said before the reason where the cluster is away. */
export function toLogError(error: unknown, what = 'the cluster does not answer'): LogError {
  if (error instanceof LogError) return error;
  const message = errorText(error);
  if (error instanceof KafkaFailure) {
    if (error.kind === 'closed') return new LogError('CLOSED', 'the log is closed', {}, error);
    if (error.kind === 'authentication') return new LogError('NOT_AUTHENTICATED', message, {}, error);
    if (isDenial(error.brokerError))
      return new LogError('NOT_AUTHORIZED', message, { missing: error.missing.map(nameAcl) }, error);
  }
  return new LogError('LOG_UNAVAILABLE', `${what}: ${message}`, {}, error);
}

const PASSING: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.CORRUPT_MESSAGE,
  KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
  KAFKA_ERRORS.LEADER_NOT_AVAILABLE,
  KAFKA_ERRORS.NOT_LEADER,
  KAFKA_ERRORS.REQUEST_TIMED_OUT,
  KAFKA_ERRORS.REPLICA_NOT_AVAILABLE,
  KAFKA_ERRORS.NETWORK_EXCEPTION,
  KAFKA_ERRORS.COORDINATOR_LOADING,
  KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE,
  KAFKA_ERRORS.NOT_COORDINATOR,
  KAFKA_ERRORS.NOT_ENOUGH_REPLICAS,
  KAFKA_ERRORS.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
  KAFKA_ERRORS.NOT_CONTROLLER,
  KAFKA_ERRORS.STORAGE_ERROR,
  KAFKA_ERRORS.FENCED_LEADER_EPOCH,
  KAFKA_ERRORS.UNKNOWN_LEADER_EPOCH,
  KAFKA_ERRORS.OFFSET_NOT_AVAILABLE,
  KAFKA_ERRORS.THROTTLING_QUOTA_EXCEEDED,
]);

/** May go away by itself: a leader moves, a broker restarts, a replica catches up. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof KafkaFailure)) return false;
  switch (error.kind) {
    case 'connection':
    case 'timeout':
    case 'no-leader':
      return true;
    case 'broker':
      return PASSING.has(error.brokerError);
    case 'authentication':
    case 'closed':
    case 'quota':
    case 'answer':
      return false;
  }
}
