/** Everything that happens in a run, in order: a running hash of it, and the lines themselves if they are wanted. */
import { createHash } from 'node:crypto';

const PIECE_CHARS = 32_768;

export interface Trace {
  add(who: string, what: string): void;
  /** Of all lines so far. */
  hash(): string;
  readonly lines: readonly string[];
  readonly count: number;
}

export function createTrace(nowMs: () => number, keepLines: boolean): Trace {
  const hash = createHash('sha256');
  const lines: string[] = [];
  let count = 0;
  // Told to the hash in large pieces: a call for each line costs more than the line.
  let waiting = '';
  const flush = (): void => {
    hash.update(waiting);
    waiting = '';
  };
  return {
    lines,
    get count() {
      return count;
    },
    add(who, what) {
      const line = `${nowMs().toFixed(3)} ${who} ${what}`;
      count++;
      waiting += `${line}\n`;
      if (waiting.length > PIECE_CHARS) flush();
      if (keepLines) lines.push(line);
    },
    hash() {
      flush();
      return hash.copy().digest('hex').slice(0, 24);
    },
  };
}
