/** A broker with access control that speaks every way of logging in. Its plain listener is for whoever sets it up: that one may do everything. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { Certificates } from './certificates.ts';
import { makeCertificates } from './certificates.ts';
import { TEST_BROKER } from './find-kafka.ts';
import { writeKafkaScripts } from './kafka-scripts.ts';
import type { LocalKafka } from './local-kafka.ts';
import { startLocalKafka } from './local-kafka.ts';

export interface SecureBroker {
  readonly kafka: LocalKafka;
  readonly certificates: Certificates;
  /** Where sessions end after {@link SESSION_MS}. */
  readonly expiring: readonly string[];
  /** Runs lines of shell with Kafka's scripts in its path and an empty `admin.properties`; resolves with what they print. */
  shell(script: string): Promise<string>;
  stop(): Promise<void>;
}

/** Users of PLAIN and SCRAM: the password is made of the name. */
const USERS = ['gateway', 'worker', 'producer', 'operator', 'nobody'] as const;
export type SecureUser = (typeof USERS)[number];

/** As the Kafka driver takes it. */
export interface PasswordLogin {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  readonly username: string;
  readonly password: string;
}

export const SESSION_MS = 2000;
const SHELL_MS = 280_000;
const run = promisify(execFile);

export function passwordOf(user: string): string {
  return `${user}-pa55word`;
}

export function saslOf(user: SecureUser, mechanism: PasswordLogin['mechanism'] = 'plain'): PasswordLogin {
  return { mechanism, username: user, password: passwordOf(user) };
}

/** A token that is signed by nobody, as a broker without an issuer takes it. */
export function makeToken(principal: string, lifeMs: number, issuedMs: number): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const claims = { sub: principal, iat: issuedMs / 1000, exp: (issuedMs + lifeMs) / 1000 };
  return `${encode({ alg: 'none' })}.${encode(claims)}.`;
}

export async function startSecureBroker(): Promise<SecureBroker> {
  const certificates = makeCertificates();
  const users = USERS.map((user) => `user_${user}="${passwordOf(user)}"`).join(' ');
  const plain = `org.apache.kafka.common.security.plain.PlainLoginModule required ${users};`;
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
  const bearer =
    'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";';
  const sasl = (listener: string): Record<string, string> => ({
    [`listener.name.${listener}.sasl.enabled.mechanisms`]: 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    [`listener.name.${listener}.plain.sasl.jaas.config`]: plain,
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`]: scram,
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`]: scram,
    [`listener.name.${listener}.oauthbearer.sasl.jaas.config`]: bearer,
  });
  const tls = (listener: string): Record<string, string> => ({
    [`listener.name.${listener}.ssl.keystore.type`]: 'PEM',
    [`listener.name.${listener}.ssl.keystore.key`]: certificates.server.key,
    [`listener.name.${listener}.ssl.keystore.certificate.chain`]: certificates.server.cert + certificates.ca,
  });
  const expiring = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'].map((mechanism): [string, string] => [
    `listener.name.expiring.${mechanism}.connections.max.reauth.ms`,
    String(SESSION_MS),
  ]);
  const kafka = await startLocalKafka({
    listeners: { SASL: 'SASL_PLAINTEXT', EXPIRING: 'SASL_PLAINTEXT', TLS: 'SASL_SSL', MUTUAL: 'SSL' },
    overrides: {
      ...TEST_BROKER,
      'auto.create.topics.enable': 'false',
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      'allow.everyone.if.no.acl.found': 'false',
      'super.users': 'User:ANONYMOUS',
      ...sasl('sasl'),
      ...sasl('expiring'),
      ...sasl('tls'),
      ...Object.fromEntries<string>(expiring),
      ...tls('tls'),
      ...tls('mutual'),
      'listener.name.mutual.ssl.client.auth': 'required',
      'listener.name.mutual.ssl.truststore.type': 'PEM',
      'listener.name.mutual.ssl.truststore.certificates': certificates.ca,
    },
  });
  const scripts = mkdtempSync(path.join(tmpdir(), 'throughline-scripts-'));
  writeKafkaScripts(kafka.jars, scripts);
  writeFileSync(path.join(scripts, 'admin.properties'), '');
  return {
    kafka,
    certificates,
    expiring: kafka.listener('EXPIRING'),
    async shell(script) {
      const env = { ...process.env, PATH: `${scripts}:${process.env['PATH'] ?? ''}` };
      const { stdout } = await run('sh', ['-eu', '-c', script], { cwd: scripts, env, timeout: SHELL_MS });
      return stdout;
    },
    async stop() {
      certificates.dispose();
      rmSync(scripts, { recursive: true, force: true });
      await kafka.stop();
    },
  };
}
