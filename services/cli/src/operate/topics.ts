/** `throughline topics apply | show | diff`. */
import { applyTopics, diffTopics, showTopics } from '@throughline/log/kafka';
import type { ShownTopic, TopicChange, TopicPlanOptions } from '@throughline/log/kafka';
import { formatDuration, formatSize } from '../format-value.ts';
import { kafkaClient } from '../open-log.ts';
import { StartError } from '../faults.ts';
import type { Settings } from '../settings.ts';
import { suggestCommand } from '../suggest-command.ts';
import type { OperatorProcess } from './operator-process.ts';
import { renderJson, renderTable } from './table.ts';

/** 0: as it should be. 1: a topic is missing, `diff` found differences, or `apply` refused some. */
export async function runTopics(
  action: 'apply' | 'show' | 'diff',
  json: boolean,
  settings: Settings,
  self: OperatorProcess,
): Promise<number> {
  const { location, kafka, topics } = settings.log;
  if (location.kind !== 'kafka')
    throw new StartError(
      'A log file has no topics: its partitions are made with it. Name the cluster with --log kafka://<host>:<port>.',
    );
  const client = kafkaClient(settings.log, location.brokers, { role: 'operator', logger: self.logger });
  const options = planOptions(kafka.prefix, topics);
  const apply = suggestCommand(settings, 'topics apply');
  if (action === 'show') {
    const shown = await showTopics(client, options);
    self.out(json ? renderJson({ topics: shown.map(toJson) }) : renderTopics(shown, apply));
    return shown.every(({ state }) => state !== null) ? 0 : 1;
  }
  const changes = await (action === 'diff' ? diffTopics(client, options) : applyTopics(client, options));
  self.out(json ? renderJson({ changes }) : renderChanges(changes, action, apply));
  const isFine = action === 'diff' ? changes.length === 0 : changes.every(({ kind }) => kind !== 'refused');
  return isFine ? 0 : 1;
}

export function planOptions(prefix: string, asked: Settings['log']['topics']): TopicPlanOptions {
  const { partitions, replication, retentionMs, inboundRetentionMs, maxMessageBytes } = asked;
  return {
    prefix,
    ...(partitions === undefined ? {} : { partitions }),
    ...(replication === undefined ? {} : { replication }),
    ...(retentionMs === undefined ? {} : { retentionMs }),
    ...(inboundRetentionMs === undefined ? {} : { inboundRetentionMs }),
    ...(maxMessageBytes === undefined ? {} : { maxMessageBytes }),
  };
}

/** One line a change, and what it means. `apply`: the command that does what `diff` found. */
export function renderChanges(changes: readonly TopicChange[], action: 'apply' | 'diff', apply: string): string {
  if (changes.length === 0) return 'The topics are as they should be.\n';
  const isApplied = action === 'apply';
  const lines = changes.map((change) => {
    switch (change.kind) {
      case 'create':
        return `+ ${change.topic}: ${isApplied ? 'created' : 'missing'}, ${change.partitions} partitions, ${change.replication} replicas`;
      case 'add-partitions':
        return `+ ${change.topic}: partitions ${change.from} -> ${change.to}`;
      case 'set':
        return `~ ${change.topic}: ${change.setting} ${change.from === '' ? '(none)' : change.from} -> ${change.to}`;
      case 'refused':
        return `! ${change.topic}: ${change.reason}`;
    }
  });
  const refused = changes.filter(({ kind }) => kind === 'refused').length;
  const done = changes.length - refused;
  const summary = isApplied
    ? `${done} done, ${refused} refused.`
    : `${done} to do with \`${apply}\`, ${refused} that it would refuse.`;
  const isGrown = isApplied && changes.some(({ kind }) => kind === 'add-partitions');
  return `${lines.join('\n')}\n${summary}\n${isGrown ? GROWN : ''}`;
}

const GROWN = 'Gateways and workers that run use the new partitions within seconds; sessions stay where they are.\n';

export function renderTopics(topics: readonly ShownTopic[], apply: string): string {
  const header = ['TOPIC', 'PARTITIONS', 'REPLICAS', 'IN SYNC', 'MIN IN SYNC', 'CLEANUP', 'RETENTION', 'MAX MESSAGE'];
  const rows = topics.map(({ name, state }) => {
    if (state === null) return [name, 'missing'];
    const setting = (key: string): string => state.settings.get(key) ?? '?';
    const isCompacted = setting('cleanup.policy') === 'compact';
    return [
      name,
      String(state.partitions) + (state.offline === 0 ? '' : ` (${state.offline} offline)`),
      String(state.replication),
      String(state.inSync),
      setting('min.insync.replicas'),
      setting('cleanup.policy'),
      isCompacted ? '-' : showMs(setting('retention.ms')),
      showBytes(setting('max.message.bytes')),
    ];
  });
  const missing = topics.filter(({ state }) => state === null).length;
  return renderTable(header, rows) + (missing === 0 ? '' : `${missing} missing; run \`${apply}\`\n`);
}

function showMs(text: string): string {
  if (text === '-1') return 'for ever';
  return /^\d+$/.test(text) ? formatDuration(Number(text)) : text;
}

function showBytes(text: string): string {
  return /^\d+$/.test(text) ? formatSize(Number(text)) : text;
}

function toJson({ topic, name, state }: ShownTopic): object {
  if (state === null) return { topic, name, exists: false };
  return { topic, name, exists: true, ...state, settings: Object.fromEntries(state.settings) };
}
