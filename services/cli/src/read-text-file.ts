/** Files that a person names: read to their end, up to a bound, whatever kind of file it is. SPEC: CLI-FILES. */
import { closeSync, openSync, readSync } from 'node:fs';

/** Configuration, secrets and tokens are far smaller. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

export class FileTooLargeError extends Error {
  override readonly name = 'FileTooLargeError';
  constructor() {
    super(`it holds more than ${MAX_FILE_BYTES / 1024 / 1024} MiB`);
  }
}

/** As UTF-8. A pipe is read until it ends. Throws what the system says, or {@link FileTooLargeError}. */
export function readTextFile(file: string): string {
  const handle = openSync(file, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let bytes = 0; ;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const count = readSync(handle, chunk);
      if (count === 0) return Buffer.concat(chunks).toString('utf8');
      bytes += count;
      if (bytes > MAX_FILE_BYTES) throw new FileTooLargeError();
      chunks.push(chunk.subarray(0, count));
    }
  } finally {
    closeSync(handle);
  }
}
