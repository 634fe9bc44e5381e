/** Writes lines to a child in order and within a bound. */
import type { Writable } from 'node:stream';

export interface ChildStdin {
  /**
   * Resolves when the line was given to the system or to a buffer with room; otherwise when there is room again.
   * Rejects once {@link fail} was called.
   */
  write(line: string): Promise<void>;
  /** Rejects everything that waits and everything that comes. */
  fail(error: Error): void;
}

export interface ChildStdinOptions {
  /** Bytes that wait for the child at most, besides one line. */
  readonly maxBytes: number;
  /** More than `maxBytes` wait: the child does not read. */
  onFull(): void;
  /** The child closed its end. */
  onBroken(): void;
}

export function createChildStdin(stream: Writable, options: ChildStdinOptions): ChildStdin {
  let waitingBytes = 0;
  let failure: Error | undefined;
  const waiting = new Set<{ resolve(): void; reject(error: Error): void }>();
  stream.on('drain', () => {
    for (const waiter of waiting) waiter.resolve();
    waiting.clear();
  });
  stream.on('error', () => {
    options.onBroken();
  });
  return {
    write(line) {
      if (failure !== undefined) return Promise.reject(failure);
      const bytes = Buffer.byteLength(line);
      if (waitingBytes > 0 && waitingBytes + bytes > options.maxBytes) {
        options.onFull();
        return Promise.reject(failure ?? new Error('the child does not read its input'));
      }
      waitingBytes += bytes;
      const hasRoom = stream.write(line, () => {
        waitingBytes -= bytes;
      });
      if (hasRoom) return Promise.resolve();
      return new Promise((resolve, reject) => {
        waiting.add({ resolve, reject });
      });
    },
    fail(error) {
      failure ??= error;
      for (const waiter of waiting) waiter.reject(failure);
      waiting.clear();
    },
  };
}
