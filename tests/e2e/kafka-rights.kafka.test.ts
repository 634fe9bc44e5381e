/** The commands on a broker with access control: the rights of docs/operations/security-kafka.md, one user a role. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import type { SecureBroker, SecureUser } from '@throughline/testkit/kafka';
import { passwordOf, startSecureBroker } from '@throughline/testkit/kafka';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
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
