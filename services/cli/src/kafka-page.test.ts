/** The examples of docs/operations/security-kafka.md, as the commands take them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadSettings } from './load-settings.ts';
import { parseArguments } from './parse-arguments.ts';
import type { KafkaSettings } from './settings.ts';

const PAGE = readFileSync(new URL('../../../docs/operations/security-kafka.md', import.meta.url), 'utf8');
const COMMANDS = PAGE.split('\n').filter((line) => line.startsWith('throughline '));
const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n';
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kafka-page-'));
  const files = { 'ca.pem': PEM, 'worker.pem': PEM, 'worker-key.pem': KEY, password: 'secret\n', token: 'abc' };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function load(line: string, environment: Record<string, string> = {}): KafkaSettings {
  const given = parseArguments(line.split(' '));
  return loadSettings({ arguments: given, environment, cwd: folder, demoModule: '/demo.js' }, 'worker').log.kafka;
}

describe('the page on security of Kafka', () => {
  it('[CLI-KAFKA] each of its command lines is taken, and every way of logging in is among them', () => {
    const settings = COMMANDS.map((line) => load(line.slice('throughline '.length)));
    expect(settings.every(({ tls }) => tls !== null)).toBe(true);
    const logins = settings.flatMap(({ login }) => (login === null ? [] : [login]));
    expect(new Set(logins.map(({ mechanism }) => mechanism))).toEqual(
      new Set(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer']),
    );
    const sources = logins.flatMap((login) => (login.mechanism === 'oauthbearer' ? [login.source.kind] : []));
    expect(sources.sort()).toEqual(['client-credentials', 'file']);
    expect(settings.some(({ tls }) => tls?.ca === PEM && tls.cert === PEM && tls.key === KEY)).toBe(true);
  });

  it('[CLI-KAFKA] its environment and its file say the same', () => {
    const expected = { mechanism: 'scram-sha-512', username: 'worker', password: 'secret' };
    const variables = PAGE.split('\n').filter((line) => line.startsWith('THROUGHLINE_'));
    const environment = Object.fromEntries(variables.map((line) => line.split('=') as [string, string]));
    expect(load('worker', environment)).toMatchObject({ tls: {}, login: expected });
    const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(PAGE) ?? [];
    writeFileSync(path.join(folder, 'throughline.yaml'), yaml);
    expect(load('worker')).toMatchObject({ tls: { ca: PEM }, login: expected });
  });
});
