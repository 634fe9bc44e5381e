/** How values are written, the same in flags, environment and file. A fault says what to write instead. */
import type { OptionKind, OptionRow } from './option-table.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type LogLocation =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  /** `brokers`: `host:port` each. */
  | { readonly kind: 'kafka'; readonly brokers: readonly string[] };

export interface ValueOfKind {
  readonly address: Address;
  readonly 'address-or-off': Address | null;
  readonly log: LogLocation;
  /** Milliseconds. */
  readonly duration: number;
  /** Bytes. */
  readonly size: number;
  readonly count: number;
  readonly switch: boolean;
  readonly list: readonly string[];
  readonly text: string;
  readonly choice: string;
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const KAFKA_PORT = 9092;
const MS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
const BYTES = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1000],
  ['mb', 1000 ** 2],
  ['gb', 1000 ** 3],
  ['kib', 1024],
  ['mib', 1024 ** 2],
  ['gib', 1024 ** 3],
]);

const ok = <T>(value: T): Parsed<T> => ({ ok: true, value });
const fault = (problem: string): Parsed<never> => ({ ok: false, problem });

const PARSERS: { readonly [K in OptionKind]: (text: string, row: OptionRow) => Parsed<ValueOfKind[K]> } = {
  address: (text) => parseAddress(text),
  'address-or-off': (text) => (text === 'off' || text === 'false' ? ok(null) : parseAddress(text, ', or off')),
  log: (text) => parseLog(text),
  duration: (text) => parseDuration(text),
  size: (text) => parseSize(text),
  count: (text) => (/^\d{1,15}$/.test(text) ? ok(Number(text)) : fault('must be a whole number, for example 12')),
  switch: (text) => {
    if (text === 'true' || text === '1') return ok(true);
    if (text === 'false' || text === '0') return ok(false);
    return fault('must be true or false');
  },
  list: (text) => {
    const items = text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
    return items.length > 0 ? ok(items) : fault('must name at least one, separated by commas');
  },
  text: (text) => (text.trim() === '' ? fault('must not be empty') : ok(text)),
  choice: (text, row) =>
    (row.choices ?? []).includes(text) ? ok(text) : fault(`must be one of ${(row.choices ?? []).join(', ')}`),
};

export function parseValue<K extends OptionKind>(kind: K, text: string, row: OptionRow): Parsed<ValueOfKind[K]> {
  return PARSERS[kind](text, row);
}

function parseAddress(text: string, also = ''): Parsed<Address> {
  const match = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[^\s:[\]/]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.['v6'] ?? match?.groups?.['name'];
  const port = Number(match?.groups?.['port'] ?? Number.NaN);
  if (host === undefined || !(port <= 65_535))
    return fault(`must be host:port with a port from 0 to 65535, for example 127.0.0.1:8080 or [::1]:8080${also}`);
  return ok({ host, port });
}

function parseLog(text: string): Parsed<LogLocation> {
  if (text === 'memory:' || text === 'memory') return ok({ kind: 'memory' });
  if (text.startsWith('sqlite:')) {
    const file = text.slice('sqlite:'.length);
    return file === ''
      ? fault('names no file; write for example sqlite:.throughline/log.db')
      : ok({ kind: 'sqlite', file });
  }
  if (text.startsWith('kafka:')) return parseKafka(text);
  return fault('must be kafka://<host>:<port>, sqlite:<file> or memory:, for example sqlite:.throughline/log.db');
}

function parseKafka(text: string): Parsed<LogLocation> {
  const EXAMPLE = 'write for example kafka://127.0.0.1:9092 or kafka://b1:9092,b2:9092';
  const list = /^kafka:\/\/(?<list>[^/?#]+)\/?$/.exec(text)?.groups?.['list'];
  if (list === undefined)
    return fault(`must name brokers and nothing else; ${EXAMPLE}. The prefix of topics is --prefix`);
  if (list.includes('@')) return fault('must hold no user or password; set --kafka-username and --kafka-password-file');
  const brokers: string[] = [];
  for (const item of list.split(',')) {
    const broker = /:\d+$/.test(item.replace(/^\[.*\]/, '')) ? item : `${item}:${KAFKA_PORT}`;
    const parsed = parseAddress(broker);
    if (!parsed.ok || parsed.value.port === 0)
      return fault(`names ${JSON.stringify(item)}, which is no broker; ${EXAMPLE}`);
    brokers.push(broker);
  }
  return ok({ kind: 'kafka', brokers });
}

export function parseDuration(text: string): Parsed<number> {
  const match = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text);
  const [, amount, unit] = match ?? [];
  const factor = MS.get(unit ?? '');
  if (amount === undefined || factor === undefined)
    return fault('must be a duration with its unit, for example 500ms, 30s, 15m, 24h or 7d');
  const ms = Number(amount) * factor;
  return Number.isInteger(ms) ? ok(ms) : fault('must be a whole number of milliseconds');
}

function parseSize(text: string): Parsed<number> {
  const match = /^(\d{1,12}(?:\.\d{1,3})?) ?([a-z]*)$/i.exec(text);
  const [, amount, unit = ''] = match ?? [];
  const factor = BYTES.get(unit.toLowerCase());
  if (amount === undefined || factor === undefined)
    return fault('must be a size in bytes or with a unit, for example 65536, 512KiB, 64MiB or 4GiB');
  const bytes = Number(amount) * factor;
  return Number.isInteger(bytes) ? ok(bytes) : fault('must be a whole number of bytes');
}
