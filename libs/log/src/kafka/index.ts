export { describeKafka } from './describe-kafka.ts';
export type {
  Asked,
  BrokerFacts,
  GroupFacts,
  KafkaFacts,
  TopicFactsOf,
  TopicPartitionFacts,
} from './describe-kafka.ts';
export { aclsOf, nameAcl } from './acls.ts';
export type { Acl, AclOperation, KafkaRole, RoleAcl } from './acls.ts';
export { openKafkaLog, openKafkaLogWithControls } from './kafka-log.ts';
export type { KafkaControls, KafkaLog } from './kafka-log.ts';
export type { KafkaClientOptions, KafkaLogEvent, KafkaLogOptions, KafkaSasl } from './options.ts';
export { applyTopics, diffTopics, showTopics } from './topics.ts';
export type { ShownTopic, TopicChange, TopicState } from './topics.ts';
export type { TopicPlanOptions } from './topic-settings.ts';
