/**
 * Notices that the log file was removed or replaced while it is open: the handle would go on in a file that nobody else
 * can open, and what it acknowledges would be gone with the process. SPEC: LOG-FILE-GONE.
 */
import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '../clock.ts';

const CHECK_MS = 500;

/** Calls `onGone` once when `file` is no longer the file it is now. Returns the way to stop. */
export function watchIdentity(file: string, clock: Clock, onGone: () => void): () => void {
  const { ino, dev } = statSync(file);
  let isStopped = false;
  let cancel = (): void => undefined;
  const check = async (): Promise<void> => {
    const isSame = await stat(file).then(
      (now) => now.ino === ino && now.dev === dev,
      (error: unknown) => !(error instanceof Error && 'code' in error && error.code === 'ENOENT'),
    );
    if (isStopped) return;
    if (isSame) schedule();
    else onGone();
  };
  const schedule = (): void => {
    cancel = clock.setTimer(CHECK_MS, () => {
      void check();
    });
  };
  schedule();
  return () => {
    isStopped = true;
    cancel();
  };
}
