/** The logger of production: pino, as JSON lines for machines or as readable lines for people. */
import { pino, stdSerializers } from 'pino';
import type { Logger as Pino } from 'pino';
import type { Logger } from './ports.ts';
import { formatReadableLine } from './readable-line.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface PinoLoggerOptions {
  readonly level: LogLevel;
  /** JSON lines instead of readable ones. */
  readonly json: boolean;
  /** Takes one line, its newline included. Must not throw. */
  write(line: string): void;
}

export function createPinoLogger(options: PinoLoggerOptions): Logger {
  const { json } = options;
  const root = pino(
    {
      level: options.level,
      // Neither pid nor host name: whoever collects the lines knows where they come from.
      base: null,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: stdSerializers.err, reason: serializeReason },
    },
    {
      write: (line: string) => {
        options.write(json ? line : formatReadableLine(line));
      },
    },
  );
  return wrap(root);
}

/** `reason` is a word in most events and a caught value in some. */
function serializeReason(value: unknown): unknown {
  return value instanceof Error ? stdSerializers.err(value) : value;
}

function wrap(inner: Pino): Logger {
  return {
    debug: (event, fields = {}) => {
      inner.debug(fields, event);
    },
    info: (event, fields = {}) => {
      inner.info(fields, event);
    },
    warn: (event, fields = {}) => {
      inner.warn(fields, event);
    },
    error: (event, fields = {}) => {
      inner.error(fields, event);
    },
    child: (fields) => wrap(inner.child(fields)),
  };
}
