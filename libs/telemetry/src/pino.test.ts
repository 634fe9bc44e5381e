import { describe, expect, it } from 'vitest';
import { createPinoLogger } from './pino.ts';
import type { LogLevel } from './pino.ts';
import type { Logger } from './ports.ts';

function logger(json: boolean, level: LogLevel = 'info'): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  return { log: createPinoLogger({ json, level, write: (line) => void lines.push(line) }), lines };
}

describe('createPinoLogger', () => {
  it('[CLI-LOGS] a JSON line holds level, time, event and fields', () => {
    const { log, lines } = logger(true);
    log.warn('append.slow', { partition: 3 });
    expect(lines).toHaveLength(1);
    const { time, ...rest } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    expect(rest).toEqual({ level: 'warn', partition: 3, event: 'append.slow' });
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('[CLI-LOGS] a readable line holds the same, quoted where it could be mistaken', () => {
    const { log, lines } = logger(false);
    log.info('session.opened', { server: 'default', note: 'two words', list: [1, 2] });
    expect(lines.join('')).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}session\.opened server=default note="two words" list=\[1,2\]\n$/,
    );
  });

  it('[CLI-LOGS] a line break in a field never starts a new log line', () => {
    const { log, lines } = logger(false);
    log.info('child.stderr', { line: 'a\n12:00:00.000 ERROR forged' });
    expect(lines.join('').split('\n')).toHaveLength(2);
  });

  it('[CLI-LOGS] an event below the level is not written', () => {
    const { log, lines } = logger(true, 'warn');
    log.info('quiet');
    log.debug('quieter');
    expect(lines).toEqual([]);
  });

  it('[CLI-LOGS] a child repeats its fields on each line', () => {
    const { log, lines } = logger(true);
    log.child({ role: 'worker' }).child({ partition: 1 }).info('claimed');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ role: 'worker', partition: 1, event: 'claimed' });
  });

  it('[CLI-LOGS] an error is written with its message, and with its stack at level error', () => {
    const { log, lines } = logger(false);
    log.error('loop.failed', { error: new TypeError('no such thing') });
    log.warn('retried', { error: new TypeError('later') });
    expect(lines[0]).toMatch(/ERROR loop\.failed error="no such thing"\n {4}TypeError: no such thing\n {4} +at /);
    expect(lines[1]?.trimEnd().split('\n')).toHaveLength(1);
  });
});
