/** Files that say by a process id whose they are. SPEC: CONNECT-ALONE, CONNECT-LOGIN-SHARED. */
import { stat } from 'node:fs/promises';
import os from 'node:os';
import process from 'node:process';

/** Whether the process that has left this file lives; what it says may be wrong only if ids were given anew since. */
export async function isOwnerAlive(pid: number, file: string): Promise<boolean> {
  // The system takes 0 and what is below for groups of processes.
  return Number.isSafeInteger(pid) && pid > 0 && isAlive(pid) && !(await isFromBeforeBoot(file));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there, and another user's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The process that has this id now is another one. */
async function isFromBeforeBoot(file: string): Promise<boolean> {
  try {
    return (await stat(file)).mtimeMs < Date.now() - os.uptime() * 1000;
  } catch {
    // It was released in this moment.
    return true;
  }
}
