/** Who one is, to a broker that wants to know: every way of logging in, renewals, and refusals. */
import { createServer, connect } from 'node:net';
import type { Server } from 'node:net';
import process from 'node:process';
import { inspect } from 'node:util';
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import type { SecureBroker } from '@throughline/testkit/kafka';
import { makeToken, passwordOf, saslOf, SESSION_MS, startSecureBroker } from '@throughline/testkit/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleep } from '../clock.ts';
import { textOf, textRecord } from '../conformance/records.ts';
import type { PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import { openConnection } from './connection.ts';
import type { KafkaLogOptions, KafkaSasl } from './index.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';
import { metadataCall } from './wire/cluster.ts';

const EVENTS: PartitionRef = { topic: 'events', partition: 0 };

describe.skipIf(brokersForTests() === null || process.env['KAFKA_BROKERS'] !== undefined)('kafka logins', () => {
  let broker: SecureBroker;
  let bench: KafkaBench;
  beforeAll(async () => {
    broker = await startSecureBroker();
    bench = await openKafkaBench(broker.kafka.brokers);
    const rights = [AclResourceTypes.TOPIC, AclResourceTypes.GROUP].map((resourceType) => ({
      resourceType,
      resourceName: bench.prefix,
      resourcePatternType: ResourcePatternTypes.PREFIXED,
      principal: 'User:*',
      host: '*',
      operation: AclOperationTypes.ALL,
      permissionType: AclPermissionTypes.ALLOW,
    }));
    await bench.admin.createAcls({ acl: rights });
    const [bootstrap] = broker.kafka.brokers;
    for (const bits of ['256', '512'])
      await broker.shell(
        `kafka-configs.sh --bootstrap-server ${bootstrap} --alter --add-config 'SCRAM-SHA-${bits}=[password=${passwordOf('gateway')}]' --entity-type users --entity-name gateway`,
      );
  }, 240_000);
  afterEach(() => bench.closeLogs());
  afterAll(async () => {
    await bench.dispose();
    await broker.stop();
  });

  const bearer = (principal = 'gateway', lifeMs = 60_000): KafkaSasl => ({
    mechanism: 'oauthbearer',
    token: () => Promise.resolve(makeToken(principal, lifeMs, systemClock.wallMs())),
  });
  const work = async (options: Partial<KafkaLogOptions>): Promise<void> => {
    const log = await bench.open(options);
    const { offsets } = await log.append(EVENTS, [textRecord('hello')]);
    expect((await log.read(EVENTS, offsets[0]!)).records.map(textOf)).toEqual(['hello']);
    const seat = await log.join({ group: 'logins', member: 'm', onChange: () => undefined });
    expect(seat.assigned()).toEqual([0, 1, 2, 3]);
    await log.close();
  };

  it.each([
    ['PLAIN', (): KafkaSasl => saslOf('gateway')],
    ['SCRAM-SHA-256', (): KafkaSasl => saslOf('gateway', 'scram-sha-256')],
    ['SCRAM-SHA-512', (): KafkaSasl => saslOf('gateway', 'scram-sha-512')],
    ['OAUTHBEARER', bearer],
  ])('[KAFKA-SECURE] SASL %s opens, appends, reads and joins, in the clear and over TLS', async (_name, sasl) => {
    await work({ brokers: broker.kafka.listener('SASL'), sasl: sasl() });
    await work({ brokers: broker.kafka.listener('TLS'), sasl: sasl(), ssl: { ca: broker.certificates.ca } });
  });

  it('[KAFKA-SECURE] TLS alone, with a certificate of the client as its name, does all of it', async () => {
    const { ca } = broker.certificates;
    const brokers = broker.kafka.listener('MUTUAL');
    await work({ brokers, ssl: { ca, ...broker.certificates.client('gateway') } });
    const without = bench.open({ brokers, ssl: { ca } });
    await expect(without).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
  });

  it('[KAFKA-SECURE] a broker whose certificate nobody vouches for is not spoken to, and the error says why', async () => {
    const brokers = broker.kafka.listener('TLS');
    await expect(bench.open({ brokers, sasl: saslOf('gateway'), ssl: true })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringMatching(/the CA that signed/) as string,
    });
  });

  it.each([
    ['a wrong password (PLAIN)', (): KafkaSasl => ({ ...saslOf('gateway'), password: 'wr0ng-secret' })],
    [
      'a wrong password (SCRAM)',
      (): KafkaSasl => ({ ...saslOf('gateway', 'scram-sha-256'), password: 'wr0ng-secret' }),
    ],
    [
      'a user that SCRAM does not know',
      (): KafkaSasl => ({ mechanism: 'scram-sha-512', username: 'stranger', password: 'wr0ng-secret' }),
    ],
    ['a token that has expired (OAUTHBEARER)', (): KafkaSasl => bearer('gateway', -60_000)],
    [
      'a token that is none',
      (): KafkaSasl => ({ mechanism: 'oauthbearer', token: () => Promise.resolve('wr0ng-secret') }),
    ],
  ])('[KAFKA-LOGIN] %s is told at once, by a code, and no secret is in the error or the log', async (_name, sasl) => {
    const said: unknown[] = [];
    const startedMs = systemClock.monoMs();
    const credentials = sasl();
    const token = credentials.mechanism === 'oauthbearer' ? await credentials.token() : 'wr0ng-secret';
    const error = await bench
      .open({ brokers: broker.kafka.listener('SASL'), sasl: credentials, onLog: (event) => said.push(event) })
      .then(
        () => 'opened',
        (reason: unknown) => reason,
      );
    expect(error).toMatchObject({ name: 'LogError', code: 'NOT_AUTHENTICATED' });
    expect(String(error)).toContain(`SASL ${credentials.mechanism.toUpperCase()}`);
    expect(systemClock.monoMs() - startedMs).toBeLessThan(10_000);
    const shown = inspect([error, said], { depth: 20, showHidden: true });
    for (const secret of ['wr0ng-secret', token]) {
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(Buffer.from(secret).toString('base64'));
      expect(shown).not.toContain(Buffer.from(secret).toString('hex').slice(0, 20));
    }
  });

  it('[KAFKA-LOGIN] a mechanism that the listener has not, and a listener that wants a login, are told with what to check', async () => {
    await expect(bench.open({ sasl: saslOf('gateway') })).rejects.toMatchObject({ code: 'NOT_AUTHENTICATED' });
    await expect(bench.open({ brokers: broker.kafka.listener('SASL') })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringContaining('SASL') as string,
    });
    await expect(bench.open({ brokers: broker.kafka.listener('TLS'), sasl: saslOf('gateway') })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringContaining('TLS') as string,
    });
    await expect(bench.open({ ssl: true })).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringContaining('TLS') as string,
    });
  });

  it('[KAFKA-LOGIN] who issues tokens may be away: that is no refusal, and the log says what failed', async () => {
    const token = (): Promise<string> => Promise.reject(new Error('the issuer answered 503'));
    const opening = bench.open({ brokers: broker.kafka.listener('SASL'), sasl: { mechanism: 'oauthbearer', token } });
    await expect(opening).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: expect.stringContaining('the issuer answered 503') as string,
    });
  });

  it('[KAFKA-LOGIN] credentials that are refused in the middle of the work are shown ever more rarely, and taken again when they are right', async () => {
    let isValid = true;
    let asked = 0;
    const log = await bench.open({
      brokers: broker.expiring,
      readTimeoutMs: 1000,
      sasl: {
        mechanism: 'oauthbearer',
        token() {
          asked++;
          return Promise.resolve(makeToken('gateway', isValid ? 60_000 : -60_000, systemClock.wallMs()));
        },
      },
    });
    await log.append(EVENTS, [textRecord('before')]);
    isValid = false;
    await sleep(systemClock, SESSION_MS);
    asked = 0;
    const codes = new Set<string>();
    for (const untilMs = systemClock.monoMs() + 5000; systemClock.monoMs() < untilMs; await sleep(systemClock, 20))
      for (const outcome of await Promise.allSettled([
        log.read(EVENTS, 0),
        log.append(EVENTS, [textRecord('x')]),
        log.bounds(EVENTS),
      ])) {
        if (outcome.status === 'fulfilled') continue;
        const { code, details } = outcome.reason as { code: string; details: { reason?: string } };
        codes.add(details.reason ?? code);
      }
    expect([...codes].sort()).toEqual(['NOT_AUTHENTICATED', 'not-authenticated']);
    // After 0, 1 and 3 s, and what was under way at the same time.
    expect(asked).toBeLessThan(12);
    isValid = true;
    for (const untilMs = systemClock.monoMs() + 40_000; ; await sleep(systemClock, 100)) {
      const isBack = await log.bounds(EVENTS).then(
        () => true,
        () => false,
      );
      if (isBack) break;
      if (systemClock.monoMs() > untilMs) throw new Error('never back');
    }
    await log.append(EVENTS, [textRecord('after')]);
  });

  describe('sessions that end', () => {
    let proxy: Server;
    let connections = 0;
    beforeAll(async () => {
      const [host, port] = broker.expiring[0]!.split(':');
      proxy = createServer((socket) => {
        connections++;
        const to = connect(Number(port), host);
        socket.pipe(to).pipe(socket);
        for (const each of [socket, to]) each.on('error', () => undefined);
      });
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    });
    afterAll(() => new Promise((resolve) => proxy.close(resolve)));

    it.each([
      ['SCRAM-SHA-512', (): KafkaSasl => saslOf('gateway', 'scram-sha-512')],
      ['PLAIN', (): KafkaSasl => saslOf('gateway')],
      // The token ends before the session would.
      ['OAUTHBEARER', (): KafkaSasl => bearer('gateway', 1800)],
    ])(
      '[KAFKA-RENEW] a connection in use, or idle past the end of its session, is renewed and not replaced: %s',
      async (_name, sasl) => {
        connections = 0;
        const address = proxy.address() as { port: number };
        const options = { brokers: ['unused:1'], clientId: 'test', clock: systemClock, sasl: sasl() };
        const connection = openConnection(options, { host: '127.0.0.1', port: address.port });
        const ask = (): Promise<unknown> => connection.call(metadataCall([]), 5000);
        for (const untilMs = systemClock.monoMs() + 2 * SESSION_MS; systemClock.monoMs() < untilMs;) {
          await ask();
          await sleep(systemClock, 50);
        }
        await sleep(systemClock, 1.2 * SESSION_MS);
        await ask();
        connection.destroy();
        expect(connections).toBe(1);
      },
    );

    it('[KAFKA-RENEW] readers that wait, appends and members of a group go on over the end of their sessions', async () => {
      const log = await bench.open({ brokers: broker.expiring, sasl: saslOf('gateway', 'scram-sha-512') });
      const changes: (readonly number[])[] = [];
      const seat = await log.join({ group: 'renewals', member: 'm', onChange: (assigned) => changes.push(assigned) });
      const { end } = await log.bounds(EVENTS);
      const written: string[] = [];
      const read: string[] = [];
      const untilMs = systemClock.monoMs() + 4 * SESSION_MS;
      const write = async (): Promise<void> => {
        for (let count = 0; systemClock.monoMs() < untilMs; count++) {
          await log.append(EVENTS, [textRecord(String(count))]);
          await seat.commit(0, count);
          written.push(String(count));
          // Longer than a session at times.
          await sleep(systemClock, count % 20 === 19 ? 1.2 * SESSION_MS : 30);
        }
      };
      const follow = async (): Promise<void> => {
        for (let at = end; systemClock.monoMs() < untilMs || read.length < written.length;) {
          const batch = await log.read(EVENTS, at, { waitMs: 1000 });
          read.push(...batch.records.map(textOf));
          at = batch.next;
        }
      };
      await Promise.all([write(), follow()]);
      expect(read).toEqual(written);
      expect(changes).toEqual([[0, 1, 2, 3]]);
    });
  });
});
