import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Environment } from './read-environment.ts';
import type { Settings } from './settings.ts';
import { faultsOfLine, loadLine } from './testing/load-line.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n';
const SECRET = 'A'.repeat(43);
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kafka-settings-'));
  for (const [name, text] of Object.entries({ 'ca.pem': PEM, 'c.pem': PEM, 'k.pem': KEY, pw: 'hunter2\n', t: 'tok' }))
    writeFileSync(path.join(folder, name), text);
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const load = (line: string, environment: Environment = {}): Settings => loadLine(line, environment, folder);
const faults = (line: string, environment: Environment = {}): string[] => faultsOfLine(line, environment, folder);

const WORKER = 'worker --log kafka://b1:9092';

describe('the settings of Kafka', () => {
  it('[CLI-KAFKA] without any, brokers are spoken to in the clear, on topics that begin with throughline', () => {
    expect(load(WORKER).log).toMatchObject({
      location: { kind: 'kafka', brokers: ['b1:9092'] },
      kafka: { prefix: 'throughline', tls: null, login: null, clientId: null },
      leaseMs: null,
      appendTimeoutMs: 20_000,
    });
    expect(load(`${WORKER} --append-timeout 90s`).log.appendTimeoutMs).toBe(90_000);
  });

  it('[CLI-KAFKA] TLS by a switch, or by any of its files, which are read', () => {
    expect(load(`${WORKER} --kafka-tls`).log.kafka.tls).toEqual({});
    expect(load(`${WORKER} --kafka-tls-ca-file ca.pem`).log.kafka.tls).toEqual({ ca: PEM });
    const both = load(`${WORKER} --kafka-tls-cert-file c.pem --kafka-tls-key-file k.pem`);
    expect(both.log.kafka.tls).toEqual({ cert: PEM, key: KEY });
  });

  it('[CLI-KAFKA] a login by name and password, which is read from its file without the line break at its end', () => {
    for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512'])
      expect(
        load(`${WORKER} --kafka-sasl ${mechanism} --kafka-username u --kafka-password-file pw`).log.kafka.login,
      ).toEqual({ mechanism, username: 'u', password: 'hunter2' });
    const byEnvironment = load(`${WORKER} --kafka-sasl plain --kafka-username u`, {
      THROUGHLINE_KAFKA_PASSWORD: 'x y',
    });
    expect(byEnvironment.log.kafka.login).toEqual({ mechanism: 'plain', username: 'u', password: 'x y' });
  });

  it('[CLI-KAFKA] a login by token: from a file, or from a token endpoint', () => {
    expect(load(`${WORKER} --kafka-sasl oauthbearer --kafka-token-file t`).log.kafka.login).toEqual({
      mechanism: 'oauthbearer',
      source: { kind: 'file', file: path.join(folder, 't') },
    });
    const line = `${WORKER} --kafka-sasl oauthbearer --kafka-oauth-url https://id/token --kafka-username c --kafka-password-file pw`;
    expect(load(line).log.kafka.login).toEqual({
      mechanism: 'oauthbearer',
      source: {
        kind: 'client-credentials',
        url: 'https://id/token',
        clientId: 'c',
        clientSecret: 'hunter2',
        scope: null,
      },
    });
  });

  it.each([
    [
      '--kafka-sasl plain',
      ['--kafka-sasl "plain": needs --kafka-username.', 'needs --kafka-password-file or THROUGHLINE_KAFKA_PASSWORD.'],
    ],
    ['--kafka-sasl oauthbearer', ['needs --kafka-token-file or --kafka-oauth-url.']],
    ['--kafka-username u', ['--kafka-username "u": has a meaning only with --kafka-sasl']],
    ['--kafka-sasl gssapi', ['must be one of plain, scram-sha-256, scram-sha-512, oauthbearer']],
    ['--kafka-tls-cert-file c.pem', ['needs its key; set --kafka-tls-key-file']],
    ['--kafka-tls-key-file k.pem', ['needs its certificate; set --kafka-tls-cert-file']],
    ['--kafka-tls-ca-file pw', ['holds no certificate in PEM']],
    ['--kafka-tls-ca-file none.pem', ['there is no such file']],
    ['--prefix a/b', ['letters, digits, dots']],
    [`--prefix ${'a'.repeat(201)}`, ['up to 200 letters']],
    ['--lease 10ms', ['must be at least 500ms']],
    [
      '--kafka-sasl oauthbearer --kafka-username c --kafka-password-file pw --kafka-oauth-url https://me:x@id/token',
      ['--kafka-oauth-url "https://<redacted>@id/token": must hold no user or password'],
    ],
    ['--kafka-password x', ['cannot be given on the command line']],
  ])('[CLI-KAFKA] %s is refused with its fix', (options, expected) => {
    const found = faults(`${WORKER} ${options}`);
    for (const each of expected) expect(found.join('\n')).toContain(each);
    expect(found).toHaveLength(expected.length);
  });

  it('[CLI-KAFKA] [CLI-REDACT] a password is in no fault', () => {
    const found = faults('worker --kafka-sasl plain', { THROUGHLINE_KAFKA_PASSWORD: 'hunter2' });
    expect(found.join('\n')).toContain('THROUGHLINE_KAFKA_PASSWORD: belongs to a Kafka log');
    expect(found.join('\n')).not.toContain('hunter2');
  });

  it('[CLI-KAFKA] what belongs to Kafka is refused on another log, unless it says what is so anyway', () => {
    expect(faults('serve --kafka-tls')).toEqual([
      expect.stringContaining('--kafka-tls "true": belongs to a Kafka log'),
    ]);
    expect(faults('serve --prefix throughline --no-kafka-tls')).toEqual([]);
  });
});

describe('the secret on Kafka', () => {
  it('[CLI-KAFKA-SECRET] a gateway without a secret does not start, and is told how to make one', () => {
    for (const line of [
      'gateway --log kafka://127.0.0.1:9092',
      'serve --log kafka://b1:9092',
      'serve --log kafka://127.0.0.1,b1',
    ])
      expect(faults(line)).toEqual([expect.stringMatching(/--secrets-file: .*throughline secret new > /)]);
  });

  it('[CLI-KAFKA-SECRET] a worker needs none, and serve on brokers of this machine makes its own', () => {
    expect(faults(WORKER)).toEqual([]);
    expect(faults('gateway --log kafka://b1:9092', { THROUGHLINE_SECRETS: SECRET })).toEqual([]);
    const local = load('serve --log kafka://127.0.0.1:9092,[::1]:9092,localhost');
    expect(local).toMatchObject({ secrets: null, localSecretFile: path.join(folder, '.throughline/secrets') });
  });
});
