/** One request of Kafka's protocol with its answer. Versions are those that Kafka 2.4 to 4.x have in common. */
import type { ByteReader } from './bytes.ts';
import { ByteWriter } from './bytes.ts';

export interface WireCall<T> {
  readonly apiKey: number;
  readonly apiName: string;
  readonly apiVersion: number;
  readonly body: Buffer;
  decode(answer: ByteReader): T;
}

export function makeCall<T>(
  api: { readonly key: number; readonly name: string; readonly version: number },
  write: (writer: ByteWriter) => void,
  decode: (answer: ByteReader) => T,
): WireCall<T> {
  const writer = new ByteWriter();
  write(writer);
  return { apiKey: api.key, apiName: api.name, apiVersion: api.version, body: writer.done(), decode };
}

/** Kafka's error codes that are told apart; anything else is shown by its number. */
export const KAFKA_ERRORS = {
  NONE: 0,
  OFFSET_OUT_OF_RANGE: 1,
  CORRUPT_MESSAGE: 2,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER: 6,
  REQUEST_TIMED_OUT: 7,
  REPLICA_NOT_AVAILABLE: 9,
  MESSAGE_TOO_LARGE: 10,
  NETWORK_EXCEPTION: 13,
  COORDINATOR_LOADING: 14,
  COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR: 16,
  INVALID_TOPIC: 17,
  RECORD_LIST_TOO_LARGE: 18,
  NOT_ENOUGH_REPLICAS: 19,
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: 20,
  ILLEGAL_GENERATION: 22,
  INCONSISTENT_GROUP_PROTOCOL: 23,
  UNKNOWN_MEMBER_ID: 25,
  INVALID_SESSION_TIMEOUT: 26,
  REBALANCE_IN_PROGRESS: 27,
  TOPIC_AUTHORIZATION_FAILED: 29,
  GROUP_AUTHORIZATION_FAILED: 30,
  CLUSTER_AUTHORIZATION_FAILED: 31,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_REPLICATION_FACTOR: 38,
  INVALID_CONFIG: 40,
  NOT_CONTROLLER: 41,
  POLICY_VIOLATION: 44,
  OUT_OF_ORDER_SEQUENCE: 45,
  DUPLICATE_SEQUENCE: 46,
  INVALID_PRODUCER_EPOCH: 47,
  STORAGE_ERROR: 56,
  UNKNOWN_PRODUCER_ID: 59,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
  OFFSET_NOT_AVAILABLE: 78,
  MEMBER_ID_REQUIRED: 79,
  INVALID_RECORD: 87,
  THROTTLING_QUOTA_EXCEEDED: 89,
} as const;

export function nameOfError(code: number): string {
  return Object.entries(KAFKA_ERRORS).find(([, value]) => value === code)?.[0] ?? `error ${code}`;
}
