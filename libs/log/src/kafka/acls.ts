/**
 * The rights that each role needs on a cluster with access control: the least that its whole work is done with.
 * docs/operations/security-kafka.md shows this table, and tests apply that page to a broker. SPEC: KAFKA-ACL.
 */
import { TOPICS } from '@throughline/protocol';
import type { Topic } from '@throughline/protocol';
import { DEFAULT_PREFIX, groupName, topicName } from './topic-names.ts';

/**
 * `producer`: a process with `@throughline/producer`. `operator`: whoever runs `topics`, `doctor`, `inspect`, `tail` and
 * `epoch`.
 */
export type KafkaRole = 'gateway' | 'worker' | 'producer' | 'operator';

export type AclOperation = 'Read' | 'Write' | 'Create' | 'Alter' | 'Describe' | 'DescribeConfigs' | 'AlterConfigs';

/** One right, as `kafka-acls.sh` names it. */
export interface Acl {
  readonly resource: 'topic' | 'group';
  readonly name: string;
  readonly operation: AclOperation;
}

export interface RoleAcl extends Acl {
  /** Without it the role works, and warns that it cannot check the settings of the topic. */
  readonly isOptional: boolean;
}

/** The group that workers join, without the prefix. */
const WORKER_GROUP = 'workers';

/** `Read`, `Write` and `Alter` bring `Describe` with them, `AlterConfigs` brings `DescribeConfigs`. */
const TOPIC_RIGHTS: Readonly<Record<KafkaRole, Readonly<Record<Topic, readonly AclOperation[]>>>> = {
  gateway: {
    // Read: what became of a request that the same client sent before.
    inbound: ['Read', 'Write'],
    // Write: attachments.
    events: ['Read', 'Write'],
    // Write: the end of a session that its client deletes.
    sessions: ['Read', 'Write'],
    // Write: the first epoch, and a new one when the history broke.
    meta: ['Read', 'Write'],
    'dead-letter': ['Describe'],
  },
  worker: {
    inbound: ['Read'],
    events: ['Read', 'Write'],
    sessions: ['Read', 'Write'],
    meta: ['Read', 'Write'],
    'dead-letter': ['Write'],
  },
  producer: {
    inbound: ['Write'],
    // Opening a log looks at all topics.
    events: ['Describe'],
    // Write: in doubt whether a topic was lost, a probe proves it.
    sessions: ['Read', 'Write'],
    meta: ['Read', 'Write'],
    'dead-letter': ['Describe'],
  },
  operator: {
    // Alter: more partitions, which the other two never have.
    inbound: ['Create', 'Alter', 'AlterConfigs', 'Read'],
    events: ['Create', 'Alter', 'AlterConfigs', 'Read'],
    sessions: ['Create', 'Alter', 'AlterConfigs', 'Read'],
    // Write: `epoch rotate`.
    meta: ['Create', 'AlterConfigs', 'Read', 'Write'],
    'dead-letter': ['Create', 'AlterConfigs', 'Read'],
  },
};

/** Everything a role needs, topics in their usual order. */
export function aclsOf(role: KafkaRole, prefix: string = DEFAULT_PREFIX): RoleAcl[] {
  const onTopics = TOPICS.flatMap((topic) => {
    const name = topicName(prefix, topic);
    return TOPIC_RIGHTS[role][topic].map((operation) => onTopic(name, operation));
  });
  const group = { resource: 'group', name: groupName(prefix, WORKER_GROUP), isOptional: false } as const;
  switch (role) {
    case 'gateway':
    case 'producer':
      return [...onTopics, ...settingsOf(prefix)];
    case 'worker':
      return [...onTopics, { ...group, operation: 'Read' }, ...settingsOf(prefix)];
    case 'operator':
      return [...onTopics, { ...group, operation: 'Describe' }];
  }
}

function settingsOf(prefix: string): RoleAcl[] {
  return TOPICS.map((topic) => ({
    ...onTopic(topicName(prefix, topic), 'DescribeConfigs'),
    isOptional: true,
  }));
}

function onTopic(name: string, operation: AclOperation): RoleAcl {
  return { resource: 'topic', name, operation, isOptional: false };
}

/** `Write on topic throughline.inbound`. */
export function nameAcl({ resource, name, operation }: Acl): string {
  return `${operation} on ${resource} ${name}`;
}

/** The arguments of `kafka-acls.sh` that allow it. */
export function aclArguments({ resource, name, operation }: Acl): string {
  return `--add --allow-principal User:<name> --operation ${operation} --${resource} ${name}`;
}

/** `allowed` as in an answer to Metadata: bit n is the operation of Kafka's number n. */
export function isAllowed(operation: AclOperation, allowed: number): boolean {
  return (allowed & (1 << OPERATION_NUMBERS[operation])) !== 0;
}

const OPERATION_NUMBERS: Readonly<Record<AclOperation, number>> = {
  Read: 3,
  Write: 4,
  Create: 5,
  Alter: 7,
  Describe: 8,
  DescribeConfigs: 10,
  AlterConfigs: 11,
};
