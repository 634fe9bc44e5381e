/** Reads a body that may fall silent. */
import type { Clock } from '@throughline/log';

export interface Silence {
  readonly clock: Clock;
  /** Milliseconds without a byte after which a body counts as broken. */
  readonly ms: number;
}

/** The next part of a body. Rejects if none comes in time; the reader is to be cancelled then. */
export function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { clock, ms }: Silence,
): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(ms, () => {
      reject(new Error(`silent for ${String(ms)} ms`));
    });
    reader.read().finally(cancel).then(resolve, reject);
  });
}
