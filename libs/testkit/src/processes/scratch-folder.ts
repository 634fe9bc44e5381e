/** A folder for one test, removed with all that is in it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface ScratchFolder extends Disposable {
  readonly path: string;
}

export function makeScratchFolder(): ScratchFolder {
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-test-'));
  return {
    path: folder,
    [Symbol.dispose]() {
      // A process that was just killed may still be let go of by the system.
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
