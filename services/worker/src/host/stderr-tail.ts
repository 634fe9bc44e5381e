/** A child's stderr: logged at a bounded rate, its last lines kept for the message that says why the child is gone. */
import type { Readable } from 'node:stream';
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import { createLogLimiter } from './log-limiter.ts';
import type { LogLimits } from './log-limiter.ts';

export interface StderrTail {
  /** The last lines, oldest first, each cut. */
  lastLines(): readonly string[];
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;
}

const KEPT_LINES = 8;
const MAX_LINE_CHARS = 1000;

/** Reads `stream` to its end whatever its rate: a child must never block on its own log. */
export function followStderr(stream: Readable, logger: Logger, clock: Clock, limits: LogLimits): StderrTail {
  const limiter = createLogLimiter(clock, limits);
  const kept: string[] = [];
  let line = '';
  let isCut = false;

  const finishLine = (): void => {
    const text = isCut ? `${line}…` : line;
    line = '';
    isCut = false;
    if (text.trim() === '') return;
    kept.push(text);
    if (kept.length > KEPT_LINES) kept.shift();
    if (!limiter.take()) return;
    const dropped = limiter.takeDropped();
    logger.info('host.stderr', dropped === 0 ? { line: text } : { line: text, droppedBefore: dropped });
  };

  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', from)) {
      addToLine(chunk.slice(from, end));
      finishLine();
      from = end + 1;
    }
    addToLine(chunk.slice(from));
  });
  const addToLine = (text: string): void => {
    const room = MAX_LINE_CHARS - line.length;
    if (text.length > room) isCut = true;
    line += text.slice(0, room);
  };
  stream.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => {
    stream.once('close', () => {
      finishLine();
      const dropped = limiter.takeDropped();
      if (dropped > 0) logger.info('host.stderr-dropped', { dropped });
      resolve();
    });
  });
  return { lastLines: () => [...kept], ended };
}
