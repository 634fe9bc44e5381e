/**
 * docs/operations/security-kafka.md, "By command": with exactly these rights each of the operator's commands does its
 * work, and without any one of them it names it. Each as a process, as a user of its own: a token that the broker takes
 * from anybody names it.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { DEAD_LETTER, systemClock } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import { makeToken, startSecureBroker } from '@throughline/testkit/kafka';
import type { SecureBroker } from '@throughline/testkit/kafka';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  logLevel,
  ResourcePatternTypes,
} from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const PAGE = readFileSync(new URL('../../docs/operations/security-kafka.md', import.meta.url), 'utf8');
const MAIN = fileURLToPath(new URL('../../services/cli/src/main.ts', import.meta.url));
const isSkipped = (inject('kafka') ?? null) === null || process.env['KAFKA_BROKERS'] !== undefined;
const isDeep = process.env['DEEP'] === '1';
const STEP_MS = 60_000;
const SOON_MS = 18_000;
const LIFE_MS = 3_600_000;

interface Right {
  readonly operation: keyof typeof OPERATIONS;
  readonly resource: 'topic' | 'group' | 'cluster';
  readonly name: string;
  readonly isOptional: boolean;
}

const OPERATIONS = {
  Read: AclOperationTypes.READ,
  Write: AclOperationTypes.WRITE,
  Create: AclOperationTypes.CREATE,
  Alter: AclOperationTypes.ALTER,
  Describe: AclOperationTypes.DESCRIBE,
  DescribeConfigs: AclOperationTypes.DESCRIBE_CONFIGS,
  AlterConfigs: AclOperationTypes.ALTER_CONFIGS,
};
const RESOURCES = { topic: AclResourceTypes.TOPIC, group: AclResourceTypes.GROUP, cluster: AclResourceTypes.CLUSTER };

/** By command, from the page. */
function readRights(): Map<string, Right[]> {
  const rows = PAGE.split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const head = rows.findIndex(([, first]) => first === 'command');
  const columns = rows[head] ?? [];
  const rights = new Map<string, Right[]>();
  for (const [, command = '', ...cells] of rows.slice(head + 2)) {
    if (cells.length !== columns.length - 2) break;
    const found = cells.slice(0, -1).flatMap((cell, index) => {
      const column = columns[index + 2] ?? '';
      const [resource, name] =
        column === 'cluster'
          ? (['cluster', 'kafka-cluster'] as const)
          : column.startsWith('group ')
            ? (['group', column.slice('group '.length)] as const)
            : (['topic', `throughline.${column}`] as const);
      return cell
        .split(', ')
        .filter((text) => text !== '–')
        .map((text): Right => {
          const [operation = '', optional] = text.split(' ');
          return { operation: operation as Right['operation'], resource, name, isOptional: optional !== undefined };
        });
    });
    rights.set(command, found);
  }
  return rights;
}

const RIGHTS = readRights();
const COMMANDS = [...RIGHTS.keys()];
const nameOf = ({ operation, resource, name }: Right): string => `${operation} on ${resource} ${name}`;

/** Those that are taken away one by one. What all topics need alike is proved on one; the driver's tests prove the others, and what `topics apply` needs. */
function tried(command: string): Right[] {
  const rights = (RIGHTS.get(command) ?? []).filter(({ isOptional }) => !isOptional);
  if (command === 'topics apply') return rights.filter(({ operation }) => operation === 'AlterConfigs').slice(0, 1);
  if (isDeep) return rights;
  const isAlike = ({ operation, resource }: Right): boolean => resource === 'topic' && operation.startsWith('Describe');
  const [firsts, others] = [rights.filter(isAlike), rights.filter((right) => !isAlike(right))];
  return [
    ...firsts.filter((right, index) => firsts.findIndex(({ operation }) => operation === right.operation) === index),
    ...others,
  ];
}

const userOf = (command: string, without?: Right): string =>
  [command, ...(without === undefined ? [] : [nameOf(without)])].join('-').replaceAll(/[^a-zA-Z]+/g, '-');

describe.skipIf(isSkipped)("the operator's commands on a broker with access control", () => {
  const folder = makeScratchFolder();
  let broker: SecureBroker;
  let serve: ThroughlineProcess;
  let client: RawClient;
  let eventId = '';
  let retentionHours = 30;
  beforeAll(async () => {
    broker = await startSecureBroker();
    const [bootstrap = ''] = broker.kafka.brokers;
    const kafka = { brokers: [bootstrap], clientId: 'test', clock: systemClock };
    await applyTopics(kafka, { partitions: 2, replication: 1 });
    const log = await openKafkaLog(kafka);
    await log.append(DEAD_LETTER, [{ key: null, value: null, headers: [] }]);
    await log.close();
    serve = await startThroughline('serve', { folder: folder.path, args: ['--log', `kafka://${bootstrap}`] });
    client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'test_simple_text');
    ({ id: eventId = '' } = await answer.until('the result', ({ data }) => data.includes('"result"')));
    // Something to look at in `inbound`: a request that stays open.
    const slow = await client.callTool(serve.url, 'countdown', { from: 100_000, intervalMs: 1000 });
    await slow.until('progress', ({ data }) => data.includes('notifications/progress'));
    const admin = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    await admin.createAcls({
      acl: COMMANDS.flatMap((command) => {
        const rights = RIGHTS.get(command) ?? [];
        // What a right brings with it stays, or else that would be missed first.
        const brought = ({ operation, resource, name }: Right): Right[] =>
          operation === 'Describe' || operation === 'DescribeConfigs'
            ? []
            : (['Describe', ...(operation === 'AlterConfigs' ? (['DescribeConfigs'] as const) : [])] as const).map(
                (each): Right => ({ operation: each, resource, name, isOptional: false }),
              );
        return [
          ...rights.map((right) => toAcl(userOf(command), right)),
          ...tried(command).flatMap((without) =>
            [...rights.filter((right) => right !== without), ...brought(without)].map((right) =>
              toAcl(userOf(command, without), right),
            ),
          ),
        ];
      }),
    });
    await admin.disconnect();
  }, 300_000);
  afterAll(async () => {
    await serve[Symbol.asyncDispose]();
    await broker.stop();
    folder[Symbol.dispose]();
  }, STEP_MS);

  const toAcl = (user: string, { operation, resource, name }: Right) => ({
    resourceType: RESOURCES[resource],
    resourceName: name,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: `User:${user}`,
    host: '*',
    operation: OPERATIONS[operation],
    permissionType: AclPermissionTypes.ALLOW,
  });

  const LINES: Readonly<Record<string, () => string[]>> = {
    // Each time there is something to do.
    'topics apply': () => ['--replication', '1', '--retention', `${++retentionHours}h`],
    inspect: () => [client.sessionId],
    tail: () => ['--from', 'start', '--once', '--json'],
    doctor: () => ['--json'],
    'epoch rotate': () => ['--reason', 'rights', '--yes'],
  };

  async function run(
    command: string,
    user: string,
    own = LINES[command]?.() ?? [],
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    const token = path.join(folder.path, `${user}.token`);
    writeFileSync(token, makeToken(user, LIFE_MS, Date.now()));
    const log = ['--log', `kafka://${broker.kafka.listener('SASL').join(',')}`];
    const login = ['--kafka-sasl', 'oauthbearer', '--kafka-token-file', token, '--log-level', 'error'];
    const args = ['--conditions=@throughline/source', MAIN, ...command.split(' '), ...own, ...log, ...login];
    return await new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: folder.path, timeout: STEP_MS }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      });
    });
  }
  const findingsOf = (stdout: string): { code: string; level: string; what: string; fix: string | null }[] =>
    (JSON.parse(stdout) as { findings: ReturnType<typeof findingsOf> }).findings;

  it("[OPS-RIGHTS] the page has a row for each of the operator's commands", () => {
    expect(COMMANDS.toSorted()).toEqual(
      [
        ...['topics show', 'topics diff', 'topics apply', 'doctor', 'inspect', 'tail', 'owners'],
        ...['epoch show', 'epoch rotate'],
      ].toSorted(),
    );
  });

  it.each(COMMANDS.filter((command) => command !== 'epoch rotate'))(
    '[OPS-RIGHTS] %s does its work with the rights of the page and no others, and without any one of them names it',
    { timeout: 10 * STEP_MS },
    async (command) => {
      await expectWork(command);
      for (const without of tried(command)) await expectMissed(command, without);
    },
  );

  it('[OPS-RIGHTS] so does epoch rotate, which ends what the others look at', { timeout: 10 * STEP_MS }, async () => {
    for (const without of tried('epoch rotate')) await expectMissed('epoch rotate', without);
    await expectWork('epoch rotate');
  });

  async function expectWork(command: string): Promise<void> {
    // Access control is told to brokers a moment after it was set.
    const done = await waitUntil(
      `${command} to be allowed`,
      async () => {
        const result = await run(command, userOf(command));
        return /not allowed|not-authorized/.test(result.stderr) ? undefined : result;
      },
      STEP_MS,
    );
    if (command === 'topics diff') expect(done.stdout, done.stderr).toMatch(/^The topics are as they|^[~+] /);
    else if (command === 'doctor')
      expect(
        findingsOf(done.stdout).filter(({ what, fix }) => /not allowed|kafka-acls/.test(`${what} ${fix ?? ''}`)),
      ).toEqual([]);
    else expect(done, `${command}: ${done.stdout}${done.stderr}`).toMatchObject({ code: 0 });
    if (command === 'owners') expect(done.stdout).toMatch(/\n\d +owned [^\n]* 1 +1 /);
    if (command === 'inspect') {
      expect(done.stdout).toMatch(/\nopen +requests at inbound \d+\nowner +w-\S+ \(owned\)/);
      expect((await run(command, userOf(command), [eventId])).stdout).toMatch(/\nresume +nothing is left/);
    }
    if (command === 'tail') expect(done.stdout).toContain('"type":"message"');
  }

  async function expectMissed(command: string, without: Right): Promise<void> {
    const { operation, resource, name } = without;
    const about = `${command} without ${nameOf(without)}`;
    const startedMs = performance.now();
    const { code, stdout, stderr } = await run(command, userOf(command, without));
    // Not only when what is tried again in vain has come to its deadline.
    expect(performance.now() - startedMs, about).toBeLessThan(SOON_MS);
    if (command === 'doctor') {
      const on = resource === 'cluster' ? '--cluster' : `--${resource} throughline. --resource-pattern-type prefixed`;
      const fix = expect.stringContaining(`--operation ${operation} ${on}`) as string;
      expect(findingsOf(stdout), about).toContainEqual(expect.objectContaining({ level: 'unknown', fix }));
      return;
    }
    expect({ code, stderr }, about).toEqual({
      code: 1,
      stderr: expect.stringContaining(nameOf(without)) as string,
    });
    expect(stderr, about).toContain(`--operation ${operation} --${resource} ${name}`);
  }
});
