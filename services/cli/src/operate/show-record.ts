/** A record as kcat would show it, and the command by which kcat shows it. */
import { decodeText } from '@throughline/protocol';
import type { LogRecord, Offset, Partition, Topic } from '@throughline/protocol';
import type { LogSettings } from '../settings.ts';
import { formatTime } from './time-text.ts';

export interface ShownRecord {
  /** On Kafka with the prefix. */
  readonly topic: string;
  readonly partition: Partition;
  readonly offset: Offset;
  readonly timestampMs: number;
  /** Null: none. */
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: a tombstone. Absent: not asked for. */
  readonly value?: string | null;
  readonly valueBytes: number;
}

export function showRecord(record: LogRecord, topic: string, partition: Partition, withValue: boolean): ShownRecord {
  const { offset, timestampMs, key, value } = record;
  return {
    topic,
    partition,
    offset,
    timestampMs,
    key: key === null ? null : decodeText(key),
    headers: Object.fromEntries(record.headers.map(([name, bytes]) => [name, decodeText(bytes)])),
    ...(withValue ? { value: value === null ? null : decodeText(value) } : {}),
    valueBytes: value?.length ?? 0,
  };
}

export function renderRecord(record: ShownRecord): string {
  const { topic, partition, offset, timestampMs, key, headers, value, valueBytes } = record;
  const shown = Object.entries(headers).map(([name, text]) => `${name}=${text}`);
  return [
    `topic      ${topic}, partition ${partition}, offset ${offset}`,
    `time       ${formatTime(timestampMs)} (${timestampMs})`,
    `key        ${key ?? '(none)'}`,
    `size       ${valueBytes} bytes`,
    `headers    ${shown.length === 0 ? '(none)' : shown.join(',')}`,
    ...(value === undefined ? [] : [`value      ${value ?? '(none)'}`]),
    '',
  ].join('\n');
}

/** The topic as users of the log know it. */
export function topicText({ location, kafka }: LogSettings, topic: Topic): string {
  return location.kind === 'kafka' ? `${kafka.prefix}.${topic}` : topic;
}

/** Null where there is no Kafka. Logins and certificates are kcat's own: a file named by `-F`. */
export function kcatCommand(
  { location, kafka }: LogSettings,
  { topic, partition, offset }: { readonly topic: Topic; readonly partition: Partition; readonly offset: Offset },
): string | null {
  if (location.kind !== 'kafka') return null;
  const own = kafka.tls === null && kafka.login === null ? '' : '-F kcat.conf ';
  return `kcat ${own}-C -b ${location.brokers.join(',')} -t ${kafka.prefix}.${topic} -p ${partition} -o ${offset} -c 1 -e`;
}
