/** `throughline config print`: what is in force, as a file that could be used, without secrets. */
import { Document, isScalar } from 'yaml';
import type { ServerConfig } from '@throughline/worker/config';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionKind } from './option-table.ts';
import { redactUserInfo } from './redact-credentials.ts';
import type { Settings } from './settings.ts';

const REDACTED = '<redacted>';

export function printSettings(settings: Settings): string {
  const document = new Document({});
  for (const name of OPTION_NAMES) {
    const { yaml, isSecret, kind } = optionRow(name);
    const raw = settings.layer.get(name);
    if (yaml === null || raw === undefined) continue;
    const shown = isSecret === true ? REDACTED : plainValue(kind, raw.text);
    const path = yaml.split('.');
    document.setIn(path, document.createNode(shown));
    const node = document.getIn(path, true);
    if (raw.source !== 'default' && isScalar(node)) node.comment = ` ${raw.where}`;
  }
  if (settings.fileIssuers !== null) document.setIn(['auth', 'issuers'], document.createNode(settings.fileIssuers));
  const servers = Object.fromEntries(
    Object.entries(settings.worker.servers).map(([name, server]) => [name, redactServer(server)]),
  );
  const node = document.createNode(servers);
  if (Object.values(settings.worker.servers).some(({ stdio }) => stdio !== undefined))
    // Which of its words are secret nobody can tell.
    node.commentBefore = ' Commands of stdio are shown as they stand: secrets belong in env.';
  document.set('servers', node);
  return document.toString({ lineWidth: 0 });
}

/** As YAML writes it: numbers and booleans without quotes. */
function plainValue(kind: OptionKind, text: string): unknown {
  if (kind === 'count') return Number(text);
  if (kind === 'switch') return text === 'true' || text === '1';
  const shown = redactUserInfo(text);
  return kind === 'list' ? shown.split(',').map((item) => item.trim()) : shown;
}

/** Environment, headers and user information of a URL carry credentials. */
function redactServer(server: ServerConfig): Record<string, unknown> {
  const { env, headers, upstream, ...rest } = server;
  return {
    ...rest,
    ...(upstream === undefined ? {} : { upstream: redactUrl(upstream) }),
    ...(env === undefined ? {} : { env: redactValues(env) }),
    ...(headers === undefined ? {} : { headers: redactValues(headers) }),
  };
}

function redactValues(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(record).map((key) => [key, REDACTED]));
}

export function redactUrl(text: string): string {
  const url = new URL(text);
  if (url.username === '' && url.password === '' && url.search === '') return text;
  url.username = url.username === '' ? '' : 'redacted';
  url.password = url.password === '' ? '' : 'redacted';
  url.search = url.search === '' ? '' : 'redacted';
  return url.href;
}
