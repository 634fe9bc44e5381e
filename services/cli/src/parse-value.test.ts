import { describe, expect, it } from 'vitest';
import { formatAddress, formatDuration, formatSize } from './format-value.ts';
import { optionRow } from './option-table.ts';
import { parseValue } from './parse-value.ts';
import type { ValueOfKind } from './parse-value.ts';

const row = optionRow('log-level');

function accept<K extends keyof ValueOfKind>(kind: K, text: string): unknown {
  const parsed = parseValue(kind, text, row);
  return parsed.ok ? parsed.value : `refused: ${parsed.problem}`;
}

function isRefused(kind: keyof ValueOfKind, text: string): boolean {
  return !parseValue(kind, text, row).ok;
}

describe('parseValue', () => {
  it('[CLI-VALUES] durations are numbers with one of five units', () => {
    const literals: [string, number][] = [
      ['500ms', 500],
      ['30s', 30_000],
      ['1.5s', 1500],
      ['15m', 900_000],
      ['24h', 86_400_000],
      ['7d', 604_800_000],
      ['0s', 0],
    ];
    for (const [text, ms] of literals) expect(accept('duration', text), text).toBe(ms);
    for (const text of ['', '24', '-1s', '1 s', '1w', '1s2', 's', '0.5ms', '1e3s', '٣s'])
      expect(isRefused('duration', text), text).toBe(true);
  });

  it('[CLI-VALUES] sizes are bytes, or numbers with decimal or binary units', () => {
    const literals: [string, number][] = [
      ['65536', 65_536],
      ['512KiB', 524_288],
      ['4GiB', 4_294_967_296],
      ['4GB', 4_000_000_000],
      ['1.5MiB', 1_572_864],
      ['64 mib', 67_108_864],
    ];
    for (const [text, bytes] of literals) expect(accept('size', text), text).toBe(bytes);
    for (const text of ['', '-1', '4TiBs', 'constructor', '1 constructor', '0.5', 'MiB'])
      expect(isRefused('size', text), text).toBe(true);
  });

  it('[CLI-VALUES] addresses are host and port, with brackets around IPv6', () => {
    expect(accept('address', '127.0.0.1:8080')).toEqual({ host: '127.0.0.1', port: 8080 });
    expect(accept('address', '[::1]:0')).toEqual({ host: '::1', port: 0 });
    expect(accept('address', 'gateway.internal:65535')).toEqual({ host: 'gateway.internal', port: 65_535 });
    for (const text of ['8080', ':8080', '127.0.0.1', '::1:8080', 'a:65536', 'a:b', 'http://a:1', 'a b:1', ''])
      expect(isRefused('address', text), text).toBe(true);
  });

  it('[CLI-VALUES] only an address that may be off accepts off', () => {
    expect(accept('address-or-off', 'off')).toBeNull();
    expect(accept('address-or-off', '127.0.0.1:9464')).toEqual({ host: '127.0.0.1', port: 9464 });
    expect(isRefused('address', 'off')).toBe(true);
  });

  it('[CLI-VALUES] a log is memory:, sqlite: with a file, or kafka: with brokers and nothing else', () => {
    expect(accept('log', 'memory:')).toEqual({ kind: 'memory' });
    expect(accept('log', 'sqlite:a/b.db')).toEqual({ kind: 'sqlite', file: 'a/b.db' });
    expect(accept('log', 'sqlite:')).toMatch(/names no file/);
    expect(accept('log', 'kafka://b1:9092')).toEqual({ kind: 'kafka', brokers: ['b1:9092'] });
    expect(accept('log', 'kafka://b1,[::1]:9093,10.0.0.7')).toEqual({
      kind: 'kafka',
      brokers: ['b1:9092', '[::1]:9093', '10.0.0.7:9092'],
    });
    expect(accept('log', 'kafka://user:pw@b1:9092')).toMatch(/no user or password.*--kafka-password-file/);
    for (const wrong of [
      'kafka:',
      'kafka://',
      'kafka:b1:9092',
      'kafka://b1:9092/prefix',
      'kafka://b1:0',
      'kafka://b1,,b2',
    ])
      expect(accept('log', wrong)).toMatch(/write for example kafka:\/\/127\.0\.0\.1:9092/);
    expect(isRefused('log', 'log.db')).toBe(true);
  });

  it('[CLI-VALUES] counts, switches, lists and choices refuse what they cannot mean', () => {
    expect(accept('count', '12')).toBe(12);
    expect(accept('switch', '1')).toBe(true);
    expect(accept('switch', 'false')).toBe(false);
    expect(accept('list', ' a, b ,')).toEqual(['a', 'b']);
    expect(accept('choice', 'warn')).toBe('warn');
    for (const text of ['', '1.5', '-3', '0x10', '1e3', '9'.repeat(16)])
      expect(isRefused('count', text), text).toBe(true);
    for (const text of ['yes', 'TRUE', '']) expect(isRefused('switch', text), text).toBe(true);
    expect(isRefused('list', ' , ')).toBe(true);
    expect(isRefused('choice', 'loud')).toBe(true);
    expect(isRefused('text', '  ')).toBe(true);
  });
});

describe('format', () => {
  it('[CLI-VALUES] a value is written in the largest unit that divides it, and reads back', () => {
    expect([formatDuration(1500), formatDuration(90_000), formatDuration(86_400_000), formatDuration(0)]).toEqual([
      '1500ms',
      '90s',
      '1d',
      '0ms',
    ]);
    expect([formatSize(1000), formatSize(1024), formatSize(4_294_967_296)]).toEqual(['1000', '1KiB', '4GiB']);
    expect([formatAddress({ host: '::1', port: 1 }), formatAddress({ host: 'a', port: 2 })]).toEqual([
      '[::1]:1',
      'a:2',
    ]);
  });
});
