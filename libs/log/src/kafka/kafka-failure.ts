/** How a request to a broker failed, inside of this driver. Callers of the log see `LogError` only. */
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';

export type FailureKind = 'connection' | 'timeout' | 'authentication' | 'closed' | 'no-leader' | 'broker' | 'answer';

export class KafkaFailure extends Error {
  override readonly name = 'KafkaFailure';
  readonly kind: FailureKind;
  /** Kafka's error code, for `broker`. */
  readonly brokerError: number;
  /** The request may have reached the broker. */
  readonly wasSent: boolean;

  constructor(
    kind: FailureKind,
    message: string,
    details: { readonly brokerError?: number; readonly wasSent?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.brokerError = details.brokerError ?? 0;
    this.wasSent = details.wasSent ?? false;
  }
}

export function brokerFailure(what: string, code: number): KafkaFailure {
  return new KafkaFailure('broker', `${what}: ${nameOfError(code)}`, { brokerError: code, wasSent: true });
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
    case 'answer':
      return false;
  }
}
