export { findKafka, TEST_BROKER } from './find-kafka.ts';
export type { FoundKafka, NoKafka } from './find-kafka.ts';
export { findKafkaJars, KAFKA_VERSION } from './kafka-jars.ts';
export { writeKafkaScripts } from './kafka-scripts.ts';
export { startLocalKafka } from './local-kafka.ts';
export type { LocalKafka, LocalKafkaOptions } from './local-kafka.ts';
export { makeToken, passwordOf, saslOf, SESSION_MS, startSecureBroker } from './secure-broker.ts';
export type { SecureBroker, SecureUser } from './secure-broker.ts';
