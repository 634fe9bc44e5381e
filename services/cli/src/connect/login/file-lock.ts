/**
 * A lock between processes of one machine: a file that names its holder, made with its content in one step. One whose
 * holder has died is taken over. SPEC: CONNECT-LOGIN-SHARED.
 */
import { link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { errorCode } from '../../file-problem.ts';
import { isOwnerAlive } from '../process-sign.ts';

export interface FileLock {
  /** Idempotent. Never rejects. */
  release(): Promise<void>;
}

let made = 0;

/** Of nobody else, and never again. */
function ownName(file: string): string {
  return `${file}.${process.pid}-${made++}.tmp`;
}

/** `null`: somebody who lives holds it. Rejects with what the system says of the folder. */
export async function tryLock(file: string): Promise<FileLock | null> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  // Of this try alone, so that whoever reads it knows whether it is the one that was read before.
  const own = `${process.pid} ${performance.timeOrigin} ${made}`;
  const temporary = ownName(file);
  await writeFile(temporary, own, { mode: 0o600, flag: 'wx' });
  try {
    if (!(await isLinked(temporary, file))) {
      if (!(await removeDead(file, temporary)) || !(await isLinked(temporary, file))) return null;
    }
  } finally {
    await rm(temporary, { force: true });
  }
  return {
    async release() {
      if ((await readHolder(file)) === own) await rm(file, { force: true }).catch(() => undefined);
    },
  };
}

async function isLinked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Removing a dead one takes no time. */
const TAKEOVER_MS = 10_000;

/**
 * Whether there is none by now. One at a time looks and removes: otherwise a second one, who has seen the dead one as
 * well, would remove the lock of the first.
 */
async function removeDead(file: string, own: string): Promise<boolean> {
  if (await isHeld(file)) return false;
  const guard = `${file}.takeover`;
  if (!(await isLinked(own, guard))) {
    if (await isOlderThan(guard, TAKEOVER_MS)) await rm(guard, { force: true });
    return false;
  }
  try {
    if (await isHeld(file)) return false;
    await rm(file, { force: true });
    return true;
  } finally {
    await rm(guard, { force: true });
  }
}

async function isHeld(file: string): Promise<boolean> {
  const holder = await readHolder(file);
  return holder !== null && (await isOwnerAlive(Number(holder.split(' ')[0]), file));
}

async function isOlderThan(file: string, ms: number): Promise<boolean> {
  const { ctimeMs } = await stat(file).catch(() => ({ ctimeMs: Infinity }));
  return Date.now() - ctimeMs > ms;
}

/** `null`: nobody. */
async function readHolder(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    return null;
  }
}
