export { aclsOf, nameAcl } from './acls.ts';
export type { Acl, AclOperation, KafkaRole, RoleAcl } from './acls.ts';
export type { KafkaMembership } from './group-member.ts';
export { openKafkaLog, openKafkaLogWithControls } from './kafka-log.ts';
export type { KafkaControls, KafkaLog } from './kafka-log.ts';
export type { KafkaClientOptions, KafkaLogEvent, KafkaLogOptions, KafkaSasl } from './options.ts';
export { applyTopics, diffTopics } from './topics.ts';
export type { TopicChange } from './topics.ts';
export type { TopicPlanOptions } from './topic-settings.ts';
