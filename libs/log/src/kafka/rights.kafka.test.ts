/** docs/operations/security-kafka.md, applied to a broker with access control as it stands: what it allows suffices, and each right of it is needed. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import type { SecureBroker, SecureUser as User } from '@throughline/testkit/kafka';
import { saslOf, startSecureBroker } from '@throughline/testkit/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../conformance/eventually.ts';
import { textOf, textRecord } from '../conformance/records.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { aclArguments, aclsOf, nameAcl } from './acls.ts';
import type { Acl, KafkaRole } from './acls.ts';
import type { KafkaLogEvent, KafkaLogOptions } from './index.ts';
import { applyTopics } from './index.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const PAGE = readFileSync(new URL('../../../../docs/operations/security-kafka.md', import.meta.url), 'utf8');
const ROLES: readonly KafkaRole[] = ['gateway', 'worker', 'producer', 'operator'];
const at = (topic: PartitionRef['topic']): PartitionRef => ({ topic, partition: 0 });

/** The rights in the page's table. */
function rightsOfPage(role: KafkaRole): string[] {
  const rows = PAGE.split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const head = rows.findIndex((cells) => cells.includes('gateway') && cells.includes('operator'));
  const column = rows[head]?.indexOf(role) ?? -1;
  const found: string[] = [];
  for (const cells of rows.slice(head + 2)) {
    const [, resource = ''] = cells;
    const { kind, name } = /^(?<kind>topic|group) `(?<name>[^`]+)`$/.exec(resource)?.groups ?? {};
    if (kind === undefined) break;
    for (const right of (cells[column] ?? '').split(', ').filter((text) => text !== '–'))
      found.push(`${right} on ${kind} ${name}`);
  }
  return found.sort();
}

it('[KAFKA-ACL] the table of rights in the documentation is that of the code', () => {
  for (const role of ROLES) {
    const rights = aclsOf(role).map((acl) =>
      nameAcl(acl.isOptional ? { ...acl, operation: `${acl.operation} (optional)` as Acl['operation'] } : acl),
    );
    expect(rightsOfPage(role), role).toEqual(rights.sort());
    expect(rights.length).toBeGreaterThan(9);
  }
});

describe.skipIf(brokersForTests() === null || process.env['KAFKA_BROKERS'] !== undefined)('kafka rights', () => {
  let broker: SecureBroker;
  let bench: KafkaBench;
  beforeAll(async () => {
    broker = await startSecureBroker();
    bench = await openKafkaBench(broker.kafka.brokers);
    // The page speaks of the default prefix.
    await applyTopics(
      { brokers: broker.kafka.brokers, clientId: 'test', clock: systemClock },
      { partitions: 2, replication: 1 },
    );
    const [commands = ''] = /^acls\(\)[^]*?(?=^```)/m.exec(PAGE) ?? [];
    await broker.shell(commands.replaceAll('kafka.example:9092', broker.kafka.brokers[0]!));
  }, 300_000);
  afterEach(() => bench.closeLogs());
  afterAll(async () => {
    await bench.dispose();
    await broker.stop();
  });

  const client = (user: User): Pick<KafkaLogOptions, 'brokers' | 'sasl' | 'clientId' | 'clock'> => ({
    brokers: broker.kafka.listener('SASL'),
    sasl: saslOf(user),
    clientId: `throughline-${user}`,
    clock: systemClock,
  });
  const open = (user: User, more: Partial<KafkaLogOptions> = {}) =>
    bench.open({ ...client(user), prefix: 'throughline', readTimeoutMs: 2000, ...more });
  const toEntry = (user: User, acl: Acl, how: 'LITERAL' | 'PREFIXED' = 'LITERAL') => ({
    resourceType: acl.resource === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
    resourceName: acl.name,
    resourcePatternType: ResourcePatternTypes[how],
    principal: `User:${user}`,
    host: '*',
    operation: OPERATIONS[acl.operation],
    permissionType: AclPermissionTypes.ALLOW,
  });
  const give = (user: User, ...acls: Acl[]): Promise<unknown> =>
    bench.admin.createAcls({ acl: acls.map((acl) => toEntry(user, acl)) });
  const take = (user: User, acl: Acl): Promise<unknown> => bench.admin.deleteAcls({ filters: [toEntry(user, acl)] });
  const givenTo = async (user: User): Promise<string[]> => {
    const { resources } = await bench.admin.describeAcls({
      resourceType: AclResourceTypes.ANY,
      resourcePatternType: ResourcePatternTypes.ANY,
      principal: `User:${user}`,
      operation: AclOperationTypes.ANY,
      permissionType: AclPermissionTypes.ANY,
    });
    return resources.flatMap(({ resourceType, resourceName, acls }) =>
      acls.map(({ operation }) => {
        const [name] = Object.entries(OPERATIONS).find(([, number]) => number === operation) ?? ['?'];
        return `${name} on ${resourceType === AclResourceTypes.TOPIC ? 'topic' : 'group'} ${resourceName}`;
      }),
    );
  };

  /** Everything that a role does with its log. */
  const JOBS: Readonly<Record<KafkaRole, (about?: Acl) => Promise<void>>> = {
    async gateway() {
      const log = await open('gateway', { roles: ['gateway'] });
      for (const topic of ['inbound', 'events', 'sessions', 'meta'] as const) {
        const { offsets } = await log.append(at(topic), [textRecord('x')]);
        expect((await log.read(at(topic), offsets[0]!)).records.map(textOf)).toEqual(['x']);
        await log.bounds(at(topic));
      }
      await log.close();
    },
    async worker() {
      const log = await open('worker', { roles: ['worker'] });
      const seat = await log.join({ group: 'workers', member: 'm', onChange: () => undefined });
      await seat.commit(0, 0);
      await log.read(at('inbound'), (await log.bounds(at('inbound'))).end);
      for (const topic of ['events', 'sessions', 'meta', 'dead-letter'] as const)
        await log.append(at(topic), [textRecord('x')]);
      for (const topic of ['events', 'sessions', 'meta'] as const)
        await log.read(at(topic), (await log.bounds(at(topic))).end);
      await seat.leave();
      await log.close();
    },
    async producer() {
      const log = await open('producer', { roles: ['producer'] });
      await log.append(at('inbound'), [textRecord('x')]);
      for (const topic of ['sessions', 'meta'] as const) {
        const { offsets } = await log.append(at(topic), [textRecord('x')]);
        expect((await log.read(at(topic), offsets[0]!)).records.map(textOf)).toEqual(['x']);
        await log.bounds(at(topic));
      }
      await log.close();
    },
    async operator(about) {
      const name = about?.operation === 'Create' ? about.name : 'throughline.dead-letter';
      // kafkajs tries for ten seconds to delete what is not there.
      if ((await bench.admin.listTopics()).includes(name)) await bench.admin.deleteTopics({ topics: [name] });
      await eventually(systemClock, 'the topic is gone', async () => !(await bench.admin.listTopics()).includes(name));
      plan = {
        partitions: plan.partitions + 1,
        replication: 1,
        retentionMs: plan.retentionMs + 1000,
        maxMessageBytes: plan.maxMessageBytes + 1000,
      };
      await applyTopics(client('operator'), plan);
      const log = await open('operator', { roles: ['operator'] });
      for (const topic of ['inbound', 'events', 'sessions', 'meta', 'dead-letter'] as const)
        await log.read(at(topic), (await log.bounds(at(topic))).end);
      await log.append(at('meta'), [textRecord('x')]);
      await log.close();
    },
  };
  let plan = { partitions: 2, replication: 1, retentionMs: 90_000_000, maxMessageBytes: 9_000_000 };

  it.each(ROLES)('[KAFKA-ACL] with the documented rights, and no others, %s does its whole work', async (role) => {
    expect((await givenTo(role)).sort()).toEqual(aclsOf(role).map(nameAcl).sort());
    await JOBS[role]();
  });

  it.each(ROLES)(
    '[KAFKA-ACL] without any one of them %s is refused by a code, with the right that it misses and how to add it',
    { timeout: 240_000 },
    async (role) => {
      for (const acl of aclsOf(role)) {
        // Kafka's tools show the group; the driver does not.
        if (acl.isOptional || (role === 'operator' && acl.resource === 'group')) continue;
        // Else what it brings with it would be missed first.
        const implied = acl.operation === 'AlterConfigs' ? 'DescribeConfigs' : 'Describe';
        const brought: Acl[] = acl.operation === 'Describe' ? [] : [{ ...acl, operation: implied }];
        if (brought.length > 0) await give(role, ...brought);
        await take(role, acl);
        let error: unknown = null;
        await eventually(systemClock, `${role} without ${nameAcl(acl)} is refused`, async () => {
          await JOBS[role](acl).catch((reason: unknown) => {
            error = reason;
          });
          return error !== null;
        });
        expect(error, nameAcl(acl)).toMatchObject({
          name: 'LogError',
          code: 'NOT_AUTHORIZED',
          details: { missing: expect.arrayContaining([nameAcl(acl)]) as unknown },
          message: expect.stringContaining(`kafka-acls.sh ${aclArguments(acl)}`) as string,
        });
        await give(role, acl);
        for (const extra of brought) await take(role, extra);
        await bench.closeLogs();
        await eventually(systemClock, `${nameAcl(acl)} is back`, async () =>
          JOBS[role](acl).then(
            () => true,
            () => false,
          ),
        );
      }
    },
  );

  it('[KAFKA-ACL] a right that is taken away from a process at work is named by every call that needs it, soon', async () => {
    const topics = ['inbound', 'events', 'sessions', 'meta', 'dead-letter'] as const;
    const describeAll = topics.map((topic): Acl => ({
      resource: 'topic',
      name: `throughline.${topic}`,
      operation: 'Describe',
    }));
    await give('nobody', ...describeAll);
    await eventually(systemClock, 'the log opens', () =>
      open('nobody').then(
        () => true,
        () => false,
      ),
    );
    const log = await open('nobody');
    const startedMs = systemClock.monoMs();
    await expect(log.append(at('events'), [textRecord('x')])).rejects.toMatchObject({
      code: 'APPEND_REFUSED',
      details: { reason: 'not-authorized', missing: ['Write on topic throughline.events'] },
    });
    for (const waitMs of [0, 1000])
      await expect(log.read(at('events'), 0, { waitMs })).rejects.toMatchObject({
        code: 'NOT_AUTHORIZED',
        details: { missing: ['Read on topic throughline.events'] },
      });
    await expect(log.join({ group: 'workers', member: 'm', onChange: () => undefined })).rejects.toMatchObject({
      code: 'NOT_AUTHORIZED',
      details: { missing: ['Read on group throughline.workers'] },
    });
    // Each at once, but for the reader that waits.
    expect(systemClock.monoMs() - startedMs).toBeLessThan(6000);
    await log.bounds(at('events'));
    for (const acl of describeAll) await take('nobody', acl);
    await eventually(systemClock, 'bounds are refused', async () =>
      log.bounds(at('events')).then(
        () => false,
        (error: unknown) => {
          expect(error).toMatchObject({
            code: 'NOT_AUTHORIZED',
            details: { missing: ['Describe on topic throughline.events'] },
          });
          return true;
        },
      ),
    );
    await expect(open('nobody')).rejects.toMatchObject({
      code: 'NOT_AUTHORIZED',
      details: { missing: describeAll.map(nameAcl) },
    });
  });

  it('[KAFKA-ACL] without DescribeConfigs a log is opened, warns of each topic that it cannot check, and takes what it was told', async () => {
    const optional = aclsOf('worker').filter(({ isOptional }) => isOptional);
    for (const acl of optional) await take('worker', acl);
    const warned: unknown[] = [];
    await eventually(systemClock, 'the settings cannot be read', async () => {
      warned.length = 0;
      const onLog = ({ level, message, fields }: KafkaLogEvent): void => {
        if (level === 'warn' && message.includes('DescribeConfigs')) warned.push(fields['topic']);
      };
      const log = await open('worker', { roles: ['worker'], retentionMs: 12_345, onLog });
      return warned.length === 5 && log.description.retentionMs === 12_345;
    });
    expect(warned).toEqual(optional.map(({ name }) => name));
    await JOBS.worker();
    await give('worker', ...optional);
  });

  it('[KAFKA-ACL] a prefixed right as documented opens one installation, and not its neighbour', async () => {
    const plan = { partitions: 1, replication: 1 };
    const admin = { brokers: broker.kafka.brokers, clientId: 'test', clock: systemClock };
    for (const prefix of ['team-a', 'team-ab']) await applyTopics(admin, { ...plan, prefix });
    const [command = ''] = /^kafka-acls\.sh .*--resource-pattern-type prefixed$/m.exec(PAGE) ?? [];
    const own = command
      .replaceAll('kafka.example:9092', broker.kafka.brokers[0]!)
      .replace('User:team-a', 'User:nobody');
    await broker.shell(own);
    const roles = ROLES;
    const log = await open('nobody', { prefix: 'team-a', roles });
    await (await log.join({ group: 'workers', member: 'm', onChange: () => undefined })).leave();
    await expect(open('nobody', { prefix: 'team-ab', roles })).rejects.toMatchObject({ code: 'NOT_AUTHORIZED' });
  });
});

const OPERATIONS: Readonly<Record<Acl['operation'], AclOperationTypes>> = {
  Read: AclOperationTypes.READ,
  Write: AclOperationTypes.WRITE,
  Create: AclOperationTypes.CREATE,
  Alter: AclOperationTypes.ALTER,
  Describe: AclOperationTypes.DESCRIBE,
  DescribeConfigs: AclOperationTypes.DESCRIBE_CONFIGS,
  AlterConfigs: AclOperationTypes.ALTER_CONFIGS,
};
