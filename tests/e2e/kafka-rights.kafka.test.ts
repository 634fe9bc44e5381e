/** The commands on a broker with access control: the rights of docs/operations/security-kafka.md, one user a role. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { systemClock } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import { openProducer } from '@throughline/producer';
import { parseSessionId } from '@throughline/protocol';
import type { SecureBroker, SecureUser } from '@throughline/testkit/kafka';
import { passwordOf, saslOf, startSecureBroker } from '@throughline/testkit/kafka';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';

const PAGE = readFileSync(new URL('../../docs/operations/security-kafka.md', import.meta.url), 'utf8');
const isSkipped = (inject('kafka') ?? null) === null || process.env['KAFKA_BROKERS'] !== undefined;

describe.skipIf(isSkipped)('the commands on a broker with access control', () => {
  const folder = makeScratchFolder();
  const started: ThroughlineProcess[] = [];
  let broker: SecureBroker;
  let bootstrap = '';
  beforeAll(async () => {
    broker = await startSecureBroker();
    [bootstrap = ''] = broker.kafka.brokers;
    await applyTopics(
      { brokers: [bootstrap], clientId: 'test', clock: systemClock },
      { partitions: 2, replication: 1 },
    );
    const [commands = ''] = /^acls\(\)[^]*?(?=^```)/m.exec(PAGE) ?? [];
    await broker.shell(commands.replaceAll('kafka.example:9092', bootstrap));
    writeFileSync(path.join(folder.path, 'secrets'), 'A'.repeat(43));
  }, 300_000);
  afterAll(async () => {
    await Promise.all(started.map((part) => part[Symbol.asyncDispose]()));
    await broker.stop();
    folder[Symbol.dispose]();
  }, 60_000);

  const start = async (
    role: 'gateway' | 'worker',
    user: SecureUser,
    password = passwordOf(user),
  ): Promise<ThroughlineProcess> => {
    writeFileSync(path.join(folder.path, `${role}.password`), password);
    const log = `kafka://${broker.kafka.listener('SASL').join(',')}`;
    const login = ['--kafka-sasl', 'plain', '--kafka-username', user, '--kafka-password-file', `${role}.password`];
    const own = role === 'gateway' ? ['--secrets-file', 'secrets'] : ['--module', SERVER_V2];
    const part = await startThroughline(role, { args: ['--log', log, ...login, ...own], folder: folder.path });
    started.push(part);
    return part;
  };

  it(
    '[KAFKA-ACL] gateway and worker serve with the documented rights; one that is taken away is named to the operator and hidden from the client',
    { timeout: 180_000 },
    async () => {
      const [gateway, worker] = await Promise.all([start('gateway', 'gateway'), start('worker', 'worker')]);
      const client = await waitUntil(
        'a session',
        async () => await RawClient.connect(gateway.url).catch(() => undefined),
        60_000,
      );
      const answer = await client.callTool(gateway.url, 'echo', { text: 'hello' });
      await answer.until('the result', ({ data }) => data.includes('hello'));
      for (const part of [gateway, worker]) expect(part.logs()).not.toMatch(/NOT_AUTH|not-auth|not allowed/);

      const remove = `kafka-acls.sh --bootstrap-server ${bootstrap} --remove --force --allow-principal User:gateway --operation Write --topic throughline.inbound`;
      await broker.shell(remove);
      const refused = await waitUntil(
        'a refusal',
        async () => {
          const next = await client.callTool(gateway.url, 'echo', { text: 'again' });
          return next.status === 503 ? next : undefined;
        },
        30_000,
      );
      const text = await refused.text();
      expect(JSON.parse(text)).toMatchObject({ error: { data: { code: 'LOG_UNAVAILABLE' } } });
      expect(text + JSON.stringify(refused.headers)).not.toMatch(/kafka|topic|throughline\.|User:|acl|127\.0\.0\.1/i);
      expect(gateway.logs()).toContain('kafka-acls.sh --add --allow-principal User:<name> --operation Write');
      expect(gateway.logs()).toContain('not-authorized');
      await broker.shell(remove.replace('--remove --force', '--add'));
      await waitUntil(
        'the right to be used',
        async () => ((await client.callTool(gateway.url, 'echo', { text: 'more' })).status === 200 ? true : undefined),
        30_000,
      );
    },
  );

  it(
    '[KAFKA-ACL] a producer is heard with the documented rights, and a stock client with Write on inbound alone',
    { timeout: 180_000 },
    async () => {
      const gateway = started.find(({ role }) => role === 'gateway')!;
      const client = await RawClient.connect(gateway.url);
      const stream = await client.listen(gateway.url);
      const sayings = (): unknown[] =>
        stream.events().flatMap(({ data }) => (data === '' ? [] : [(JSON.parse(data) as Said).params.data]));
      const message = (data: string) => ({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'info', data },
      });
      await using resources = new AsyncDisposableStack();
      const log = resources.adopt(
        await openKafkaLog({
          brokers: broker.kafka.listener('SASL'),
          sasl: saslOf('producer'),
          clientId: 'throughline-producer',
          clock: systemClock,
          roles: ['producer'],
        }),
        (each) => each.close(),
      );
      const producer = resources.adopt(await openProducer({ log }), (each) => each.close());
      for (const name of ['one', 'two'])
        await producer.append(client.sessionId, message(name), { idempotencyKey: name });
      await stream.until('what the producer said', ({ data }) => data.includes('"two"'));

      const acl = `--allow-principal User:nobody --operation Write --topic throughline.inbound`;
      const tool = `kafka-acls.sh --bootstrap-server ${bootstrap}`;
      await broker.shell(`${tool} --add ${acl}`);
      const { username, password } = saslOf('nobody');
      const stock = new Kafka({
        brokers: [...broker.kafka.listener('SASL')],
        sasl: { mechanism: 'plain', username, password },
        logLevel: logLevel.NOTHING,
      }).producer({ idempotent: true, allowAutoTopicCreation: false });
      await stock.connect();
      const { id } = parseSessionId(client.sessionId)!;
      const until = String(Date.now() + 50_000);
      await stock.send({
        topic: 'throughline.inbound',
        messages: [
          {
            partition: id.partition,
            key: id.key,
            value: JSON.stringify(message('three')),
            headers: { v: '1', type: 'producer.message', 'idempotency-key': 'three', until },
          },
        ],
      });
      await stock.disconnect();
      await stream.until('what the stock client said', ({ data }) => data.includes('"three"'));
      expect(sayings()).toEqual(['one', 'two', 'three']);
      await broker.shell(`${tool} --remove --force ${acl}`);
      stream.cut();
    },
  );

  it('[KAFKA-ACL] [KAFKA-LOGIN] a role without its rights, or with a wrong password, does not start, says why, and shows no secret', async () => {
    const startedMs = performance.now();
    for (const role of ['gateway', 'worker'] as const) {
      const denied = await start(role, 'nobody').catch(String);
      expect(denied).toContain('the log cannot be used: not allowed: ');
      for (const topic of ['inbound', 'events', 'sessions', 'meta'])
        expect(denied).toContain(`Read on topic throughline.${topic}`);
      const unknown = await start(role, 'nobody', 'wr0ng-secret').catch(String);
      expect(unknown).toMatch(/SASL PLAIN.*check user name and password of nobody/);
      expect(unknown).not.toContain('wr0ng-secret');
    }
    expect(performance.now() - startedMs).toBeLessThan(60_000);
  }, 120_000);
});

interface Said {
  readonly params: { readonly data: unknown };
}
