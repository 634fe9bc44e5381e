/** The options of Kafka, checked together. */
import path from 'node:path';
import { isTopicPrefix } from '@throughline/protocol';
import { chooseOne, readNamedFile } from './access-files.ts';
import type { Fault } from './faults.ts';
import type { Layer } from './layers.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName } from './option-table.ts';
import { describeValue } from './resolve-options.ts';
import type { ResolvedOptions } from './resolve-options.ts';
import type { KafkaLogin, KafkaSettings, TokenSource } from './settings.ts';

export function resolveKafka(layer: Layer, options: ResolvedOptions, cwd: string, faults: Fault[]): KafkaSettings {
  const { log, prefix = '' } = options;
  const problemAt = (name: OptionName, problem: string): void => {
    const raw = layer.get(name);
    const where = raw === undefined ? `--${name}` : describeValue(raw, optionRow(name).isSecret === true);
    faults.push({ where, problem });
  };
  if (log !== undefined && log.kind !== 'kafka')
    for (const name of OPTION_NAMES) {
      const { group, default: standard } = optionRow(name);
      // What is as by default, `config print` writes as well.
      if (group !== 'Kafka' || !layer.has(name) || layer.get(name)?.text === standard) continue;
      problemAt(name, 'belongs to a Kafka log; set --log kafka://<host>:<port>, or leave it out.');
    }
  if (!isTopicPrefix(prefix))
    problemAt('prefix', 'must be up to 200 letters, digits, dots, underscores and hyphens, for example throughline.');
  return {
    prefix,
    tls: resolveTls(layer, options, cwd, faults, problemAt),
    login: resolveLogin(layer, options, cwd, faults, problemAt),
    clientId: options['kafka-client-id'] ?? null,
  };
}

type ProblemAt = (name: OptionName, problem: string) => void;

function resolveTls(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
  problemAt: ProblemAt,
): KafkaSettings['tls'] {
  const ca = readNamedFile('kafka-tls-ca-file', layer, options, cwd, faults);
  const cert = readNamedFile('kafka-tls-cert-file', layer, options, cwd, faults);
  const key = readNamedFile('kafka-tls-key-file', layer, options, cwd, faults);
  if (layer.has('kafka-tls-cert-file') && !layer.has('kafka-tls-key-file'))
    problemAt('kafka-tls-cert-file', 'needs its key; set --kafka-tls-key-file.');
  if (layer.has('kafka-tls-key-file') && !layer.has('kafka-tls-cert-file'))
    problemAt('kafka-tls-key-file', 'needs its certificate; set --kafka-tls-cert-file.');
  for (const [name, text] of Object.entries({ 'kafka-tls-ca-file': ca, 'kafka-tls-cert-file': cert } as const))
    if (text !== undefined && !text.includes('-----BEGIN CERTIFICATE-----'))
      problemAt(name as OptionName, 'holds no certificate in PEM.');
  if (key !== undefined && !/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(key))
    problemAt('kafka-tls-key-file', 'holds no private key in PEM.');
  const isAsked = options['kafka-tls'] === true || [ca, cert, key].some((text) => text !== undefined);
  if (!isAsked) return null;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

function resolveLogin(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  faults: Fault[],
  problemAt: ProblemAt,
): KafkaLogin | null {
  const mechanism = options['kafka-sasl'];
  const needs = (name: OptionName, when: string): void => {
    problemAt('kafka-sasl', `needs --${name}${when}.`);
  };
  const unless = (names: readonly OptionName[], of: string): void => {
    for (const name of names) if (layer.has(name)) problemAt(name, `has a meaning only with ${of}; leave it out.`);
  };
  const [passwordFrom] = chooseOne(['kafka-password', 'kafka-password-file'] as const, layer, faults);
  const password =
    passwordFrom === 'kafka-password-file'
      ? readNamedFile('kafka-password-file', layer, options, cwd, faults)?.replace(/\r?\n$/, '')
      : options['kafka-password'];
  const username = options['kafka-username'];
  if (mechanism === undefined) {
    unless(['kafka-username', 'kafka-password', 'kafka-password-file'], '--kafka-sasl');
    unless(['kafka-token-file', 'kafka-oauth-url', 'kafka-oauth-scope'], '--kafka-sasl oauthbearer');
    return null;
  }
  if (mechanism === 'oauthbearer') {
    const source = resolveTokenSource(
      layer,
      options,
      cwd,
      { username, password, passwordFrom },
      faults,
      problemAt,
      needs,
    );
    return source === null ? null : { mechanism, source };
  }
  unless(['kafka-token-file', 'kafka-oauth-url', 'kafka-oauth-scope'], '--kafka-sasl oauthbearer');
  if (username === undefined) needs('kafka-username', '');
  if (passwordFrom === undefined) needs('kafka-password-file', ' or THROUGHLINE_KAFKA_PASSWORD');
  if (username === undefined || password === undefined) return null;
  return { mechanism: mechanism as 'plain' | 'scram-sha-256' | 'scram-sha-512', username, password };
}

function resolveTokenSource(
  layer: Layer,
  options: ResolvedOptions,
  cwd: string,
  given: {
    readonly username: string | undefined;
    readonly password: string | undefined;
    readonly passwordFrom: string | undefined;
  },
  faults: Fault[],
  problemAt: ProblemAt,
  needs: (name: OptionName, when: string) => void,
): TokenSource | null {
  const [from] = chooseOne(['kafka-token-file', 'kafka-oauth-url'] as const, layer, faults);
  const file = options['kafka-token-file'];
  const url = options['kafka-oauth-url'];
  if (from === 'kafka-token-file' && file !== undefined) return { kind: 'file', file: path.resolve(cwd, file) };
  if (url === undefined) {
    needs('kafka-token-file', ' or --kafka-oauth-url');
    return null;
  }
  const { protocol, username, password } = URL.parse(url) ?? { protocol: '', username: '', password: '' };
  if (!/^https?:$/.test(protocol)) problemAt('kafka-oauth-url', 'is no http or https URL.');
  else if (username !== '' || password !== '')
    problemAt('kafka-oauth-url', 'must hold no user or password; set --kafka-username and --kafka-password-file.');
  if (given.username === undefined) needs('kafka-username', ', the client id');
  if (given.passwordFrom === undefined)
    needs('kafka-password-file', ' or THROUGHLINE_KAFKA_PASSWORD, the client secret');
  if (given.username === undefined || given.password === undefined) return null;
  return {
    kind: 'client-credentials',
    url,
    clientId: given.username,
    clientSecret: given.password,
    scope: options['kafka-oauth-scope'] ?? null,
  };
}
