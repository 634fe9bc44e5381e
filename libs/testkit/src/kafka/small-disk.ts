/** A small file system of its own for one broker, which can be filled. Needs root on Linux. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  rmdirSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';

export interface SmallDisk {
  readonly folder: string;
  /** Until nothing can be written any more. */
  fill(): void;
  /** Idempotent. */
  free(): void;
  remove(): void;
}

const PREFIX = 'throughline-disk-';
const FILLER = 'filler';
const CHUNK = Buffer.alloc(1024 * 1024);

/** Null where this process may not mount. What a killed run left mounted is removed first. */
export function makeSmallDisk(sizeMb: number): SmallDisk | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null;
  removeOrphans();
  const folder = mkdtempSync(path.join(tmpdir(), `${PREFIX}${process.pid}-`));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0777`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmdirSync(folder);
    return null;
  }
  chmodSync(folder, 0o777);
  const file = path.join(folder, FILLER);
  const remove = (): void => {
    process.off('exit', remove);
    unmount(folder);
  };
  process.on('exit', remove);
  return {
    folder,
    fill() {
      const descriptor = openSync(file, 'w');
      try {
        for (let size = CHUNK.length; size > 0; size >>= 1) {
          try {
            for (;;) writeSync(descriptor, CHUNK, 0, size);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          }
        }
      } finally {
        closeSync(descriptor);
      }
    },
    free() {
      rmSync(file, { force: true });
    },
    remove,
  };
}

function unmount(folder: string): void {
  try {
    execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
  } catch {
    // It is not mounted any more.
  }
  rmSync(folder, { recursive: true, force: true });
}

function removeOrphans(): void {
  const mounts = readFileSync('/proc/mounts', 'utf8');
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const owner = Number(name.slice(PREFIX.length).split('-')[0]);
    const folder = path.join(tmpdir(), name);
    if (isAlive(owner)) continue;
    if (mounts.includes(` ${folder} `)) unmount(folder);
    else rmSync(folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
